"""Faults of the generated cases of one test in one language, and the floor of its error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from harness.languages import is_extender, is_unspaced, is_wordlike
from harness_checklist.generation.case import Case, CaseExample
from harness_checklist.generation.defect import case_defect, example_defects
from harness_checklist.lint.finding import LintFinding
from harness_checklist.suites.suite import Profile

MARKS_OF_DIRECTION: Final = "\u200e\u200f"
_FAULTS: Final = {
    "empty": "have no examples",
    "contradictory": "have two answers to one question",
    "unanswerable": "have an answer that is no span of its context",
    "inside-word": "have an answer that is only inside words: a model that answers with whole words fails",
    "unfilled-placeholder": "have braces in their texts",
    "doubled-example": "ask one question about the same context twice",
    "doubled-case": "have the same texts as another",
}
"""Kind of finding -> what so many of the cases do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The error that the templates of a test force on any system; its fields are the columns of ``--json``."""

    language: str
    test: str
    cases: int
    examples: int
    floor: float
    """The share of cases that cannot be passed, in [0, 1]; 1 where there are no cases."""
    empty: int
    unanswerable: int
    contradictory: int


def lint_cases(
    cases: Sequence[Case], profile: Profile, *, language: str, test: str, usual: int | None = None
) -> tuple[Floor, list[LintFinding]]:
    """Return the floor and the faults of the cases of one test in one language.

    Args:
        cases: All of `test` and `language`.
        profile: How their answers are compared.
        language: Its code.
        test: Its id.
        usual: How many examples a case has in the source language; without it, as many as most have here.
    """
    hits: dict[str, list[tuple[Case, str]]] = {kind: [] for kind in _FAULTS}
    first_case: dict[tuple[tuple[str, str, str], ...], str] = {}
    for case in cases:
        for kind, example in _faults(case, profile):
            hits[kind].append((case, example))
        texts = tuple((example.context, example.question, example.answer) for example in case.examples)
        if texts and first_case.setdefault(texts, case.id) != case.id:
            hits["doubled-case"].append((case, f"{first_case[texts]}: {_shown(case.examples[0])}"))
    counts = Counter(len(case.examples) for case in cases if case.examples)
    mode = counts.most_common(1)[0][0] if counts else 0
    defective = {kind: len(hits[kind]) for kind in ("empty", "unanswerable", "contradictory")}
    floor = Floor(
        language=language,
        test=test,
        cases=len(cases),
        examples=sum(size * times for size, times in counts.items()),
        floor=sum(defective.values()) / len(cases) if cases else 1.0,
        **defective,
    )
    findings = [
        _finding(
            kind,
            kind_hits[0][0],
            f"{len(kind_hits)} of {len(cases)} cases {_FAULTS[kind]}.",
            len(kind_hits),
            kind_hits[0][1],
        )
        for kind, kind_hits in hits.items()
        if kind_hits
    ]
    return floor, [*findings, *_counts(cases, counts, usual or mode)]


def _finding(kind: str, case: Case, message: str, count: int, example: str) -> LintFinding:
    return LintFinding(
        kind=kind,
        language=case.language,
        test=case.test,
        message=message,
        place=case.id,
        count=count,
        example=example,
    )


def _shown(example: CaseExample) -> str:
    return f"{example.context} | {example.question} -> {example.answer}"


def _faults(case: Case, profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield the kinds of faults of one case, each with a text that shows it."""
    defect = case_defect(case.examples, profile)
    if defect == "empty":
        yield defect, ", ".join(f"{slot}={value}" for slot, value in case.fills.items())
    elif defect is not None:
        defective = [
            example
            for example, example_defect in zip(
                case.examples, example_defects(case.examples, profile), strict=True
            )
            if example_defect == defect
        ]
        same = [
            example
            for example in defective
            if (example.context, example.question) == (defective[0].context, defective[0].question)
        ]
        answers = " / ".join(dict.fromkeys(example.answer for example in same))
        yield defect, f"{defective[0].context} | {defective[0].question} -> {answers}"
    for kind, is_faulty in (("inside-word", _is_inside), ("unfilled-placeholder", _is_unfilled)):
        for example in case.examples:
            if is_faulty(example, profile):
                yield kind, _shown(example)
                break
    doubled = Counter(map(_shown, case.examples)).most_common(1)
    if doubled and doubled[0][1] > 1:
        yield "doubled-example", doubled[0][0]


def _is_unfilled(example: CaseExample, profile: Profile) -> bool:
    text = example.context + example.question + example.answer
    return "{" in text or "}" in text


def _is_inside(example: CaseExample, profile: Profile) -> bool:
    """Return whether every occurrence of an answer touches a letter or a mark that belongs to its word.

    What the profile strips belongs to no word (Bengali texts close sentences with the currency sign U+09F7). Scripts
    without spaces have no such words.
    """
    context, answer = example.context, example.answer
    start = context.find(answer) if answer else -1
    if start < 0:
        return False
    while start >= 0:
        end = start + len(answer)
        before, after = context[start - 1 : start], context[end : end + 1]
        inside = _joins(before, answer[0]) and before not in profile.strip
        if not (inside or (_joins(after, answer[-1]) and after not in profile.strip)):
            return False
        start = context.find(answer, start + 1)
    return True


def _joins(outside: str, inside: str) -> bool:
    """Return whether a character next to an answer belongs to the word at its end or start."""
    if not outside or outside in MARKS_OF_DIRECTION or not (is_wordlike(outside) or is_extender(outside)):
        return False
    return not is_unspaced(outside) and not is_unspaced(inside)


def _counts(cases: Sequence[Case], counts: Counter[int], usual: int) -> Iterator[LintFinding]:
    for size, times in sorted(counts.items()):
        if size != usual:
            these = [case for case in cases if len(case.examples) == size]
            different = [case for case in cases if case.examples and len(case.examples) != size]
            drawn = _drawn(these, different)
            message = f"{times} of {len(cases)} cases have {size} examples, not {usual}{drawn}."
            yield _finding("example-count", these[0], message, times, _shown(these[0].examples[0]))


def _drawn(these: Sequence[Case], others: Sequence[Case]) -> str:
    """Return a clause that names a slot whose fill-ins distinguish these cases from the others; empty without one."""
    for slot in these[0].fills if others else ():
        ids = {case.fills.get(slot, "") for case in these}
        if len(ids) <= 6 and not ids & {case.fills.get(slot, "") for case in others}:
            return f": those where {slot} is {' or '.join(repr(value) for value in sorted(ids))}"
    return ""
