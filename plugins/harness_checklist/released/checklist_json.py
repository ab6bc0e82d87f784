"""Reads test cases that CheckList made (Ribeiro et al., 2020) from JSON lines.

A line is a case: ``{"test": name, "case": number, "examples": [{"context", "question", "answer"}]}``, and where they
are given ``"lang"`` (English otherwise), ``"capability"`` and ``"type"``. What CheckList's own `to_raw_file` writes
cannot be read: its ``squad`` format has neither answers nor tests, nor does it say which examples are one case.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from harness import DataError, Problem
from harness.specs import Code, SpecModel
from harness_checklist.generation.case import Case, CaseExample
from harness_checklist.generation.lines import raise_faults, read_lines, read_text
from harness_checklist.released.rule import RULES, released_profile
from harness_checklist.suites.suite import Filled

_RELEASED: Final = {test.name: test.id for test in RULES.suite.tests.values()}


class _Example(SpecModel):
    context: Filled
    question: Filled
    answer: Filled


class _CaseLine(SpecModel):
    test: Filled
    case: Annotated[int, Field(ge=0)]
    examples: tuple[_Example, ...]
    lang: Code = "en"
    capability: Filled | None = None
    type: Literal["MFT"] = "MFT"
    """Only minimum functionality tests have answers to compare."""


_LINE: Final = TypeAdapter(_CaseLine)


def slug(name: str) -> str:
    """Return the id of a test with this name: ``Basic coref, he / she`` is ``basic_coref_he_she``.

    The six tests of MultiCheckList, which are CheckList's, have the ids that they have there.
    """
    if name in _RELEASED:
        return _RELEASED[name]
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "_", plain).strip("_")


def read_checklist_json(path: Path) -> list[Case]:
    """Return the cases of a file of JSON lines in their order; the id of a case is its test's and its number.

    Raises `DataError` for a file that cannot be read or is what `to_raw_file` writes, `SpecError` with the faults of
    all lines.
    """
    text = read_text(path)
    head = text.lstrip()[:4096]
    if re.match(r'\{\s*"(version|data)"\s*:', head) and '"paragraphs"' in head:
        raise DataError(
            f"{str(path)!r} is CheckList's squad format, which holds neither answers nor tests.",
            hint="Write one JSON object per case, with test, case and examples (context, question, answer).",
        )
    faults: list[Problem] = []
    cases: list[Case] = []
    first: dict[tuple[str, str], int] = {}
    names: dict[str, str] = {}
    for number, line in read_lines(text, _LINE, faults):
        case = _case(line)
        messages = []
        if not case.test:
            messages.append(
                f"the test {line.test!r} has no Latin letter or digit, of which its id could be made"
            )
        elif names.setdefault(case.test, line.test) != line.test:
            messages.append(
                f"the tests {line.test!r} and {names[case.test]!r} would both have the id {case.test!r}"
            )
        elif (before := first.setdefault((case.language, case.id), number)) != number:
            messages.append(f"the case {case.id!r} in {case.language!r} is also in line {before}")
        faults += [Problem(message=message, line=number) for message in messages]
        cases.append(case)
    raise_faults(path, faults)
    if not cases:
        raise DataError(f"{str(path)!r} holds no test cases.")
    return cases


def _case(line: _CaseLine) -> Case:
    test = slug(line.test)
    name = f"{test}-{line.case}"
    return Case(
        id=name,
        test=test,
        language=line.lang,
        examples=tuple(
            CaseExample(
                id=f"{name}/{number}",
                context=example.context,
                question=example.question,
                answer=example.answer,
            )
            for number, example in enumerate(line.examples, 1)
        ),
        capability=line.capability or "",
        normalise=released_profile(line.lang),
    )
