"""A case of questions about a pet, for tests to list."""

from __future__ import annotations

from harness_checklist.case import Case, CaseExample


def case(id_: str, *texts: tuple[str, str, str], language: str = "en") -> Case:
    """Return a case of examples, each a context, a question and an answer."""
    examples = tuple(
        CaseExample(id=f"{id_}/{number}", context=context, question=question, answer=answer)
        for number, (context, question, answer) in enumerate(texts, start=1)
    )
    return Case(id=id_, test="pets", language=language, examples=examples)
