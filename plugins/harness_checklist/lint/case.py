"""Faults of the generated cases of one test in one language, and the floor of its error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from harness.languages.character import is_extender, is_unspaced, is_wordlike
from harness_checklist.generation.case import Case, CaseExample
from harness_checklist.generation.defect import DEFECTS, Defect, case_defect, example_defects
from harness_checklist.lint.finding import Finding
from harness_checklist.lint.script import WordScripts, language_scripts
from harness_checklist.suites.profile import Profile

__all__ = ["CaseLint", "Floor", "lint_cases", "script_findings"]


MARKS_OF_DIRECTION: Final = "\u200e\u200f"


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The error that the templates of a test force on any system, over a number of cases."""

    language: str
    test: str
    cases: int
    examples: int
    empty: int
    unanswerable: int
    contradictory: int

    @property
    def defective(self) -> int:
        """The cases that cannot be passed."""
        return self.empty + self.unanswerable + self.contradictory

    @property
    def floor(self) -> float:
        """The share of cases that cannot be passed, in [0, 1]; 1 where there are no cases."""
        return self.defective / self.cases if self.cases else 1.0

    def as_row(self) -> dict[str, str | int | float]:
        """Return the floor as a plain object; its first five keys are the documented ones."""
        return {
            "language": self.language,
            "test": self.test,
            "cases": self.cases,
            "examples": self.examples,
            "floor": self.floor,
            "empty": self.empty,
            "unanswerable": self.unanswerable,
            "contradictory": self.contradictory,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLint:
    """What is known about the cases of one test in one language."""

    floor: Floor
    findings: tuple[Finding, ...]
    usual: int
    """How many examples most of the cases have; 0 where there are none."""


def lint_cases(
    cases: Sequence[Case], profile: Profile, *, language: str, test: str, usual: int | None = None
) -> CaseLint:
    """Return the floor and the faults of the cases of one test in one language.

    Args:
        cases: All of `test` and `language`.
        profile: How their answers are compared.
        language: Its code.
        test: Its id.
        usual: How many examples a case has in the source language; without it, as many as most have here.
    """
    groups: dict[Defect, list[Case]] = {defect: [] for defect in DEFECTS}
    for case in cases:
        defect = case_defect(case.examples, profile)
        if defect is not None:
            groups[defect].append(case)
    counts = Counter(len(case.examples) for case in cases if case.examples)
    mode = counts.most_common(1)[0][0] if counts else 0
    floor = Floor(
        language=language,
        test=test,
        cases=len(cases),
        examples=sum(size * times for size, times in counts.items()),
        empty=len(groups["empty"]),
        unanswerable=len(groups["unanswerable"]),
        contradictory=len(groups["contradictory"]),
    )
    findings = [
        *_defects(groups, profile, len(cases)),
        *_inside_words(cases, profile),
        *_unfilled(cases),
        *_counts(cases, counts, usual or mode),
        *_doubled_examples(cases),
        *_doubled_cases(cases),
    ]
    return CaseLint(floor=floor, findings=tuple(findings), usual=mode)


def _finding(kind: str, case: Case, message: str, count: int, example: str = "") -> Finding:
    return Finding(
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


def _defects(groups: dict[Defect, list[Case]], profile: Profile, total: int) -> Iterator[Finding]:
    if groups["empty"]:
        case = groups["empty"][0]
        drawn = ", ".join(f"{slot}={value}" for slot, value in case.fills.items())
        message = f"{len(groups['empty'])} of {total} cases have no examples."
        yield _finding("empty", case, message, len(groups["empty"]), drawn)
    if groups["contradictory"]:
        case = groups["contradictory"][0]
        sides = [
            example
            for example, defect in zip(case.examples, example_defects(case.examples, profile), strict=True)
            if defect == "contradictory"
        ]
        same = [one for one in sides if (one.context, one.question) == (sides[0].context, sides[0].question)]
        answers = " / ".join(dict.fromkeys(one.answer for one in same))
        message = f"{len(groups['contradictory'])} of {total} cases have two answers to one question."
        text = f"{same[0].context} | {same[0].question} -> {answers}"
        yield _finding("contradictory", case, message, len(groups["contradictory"]), text)
    if groups["unanswerable"]:
        case = groups["unanswerable"][0]
        found = example_defects(case.examples, profile)
        message = (
            f"{len(groups['unanswerable'])} of {total} cases have an answer that is no span of its context."
        )
        text = _shown(case.examples[found.index("unanswerable")])
        yield _finding("unanswerable", case, message, len(groups["unanswerable"]), text)


def _inside_words(cases: Sequence[Case], profile: Profile) -> Iterator[Finding]:
    found = []
    for case in cases:
        for example in case.examples:
            if _inside(example.context, example.answer, profile.strip):
                found.append((case, example))
                break
    if found:
        case, example = found[0]
        message = (
            f"{len(found)} of {len(cases)} cases have an answer that is only inside words: "
            "a model that answers with whole words fails."
        )
        yield _finding("inside-word", case, message, len(found), _shown(example))


def _inside(context: str, answer: str, stripped: str) -> bool:
    """Return whether every occurrence of an answer touches a letter or a mark that belongs to its word.

    What the profile strips belongs to no word (Bengali texts close sentences with the currency sign U+09F7). Scripts
    without spaces have no such words.
    """
    start = context.find(answer) if answer else -1
    if start < 0:
        return False
    while start >= 0:
        end = start + len(answer)
        before, after = context[start - 1 : start], context[end : end + 1]
        inside = _joins(before, answer[0]) and before not in stripped
        if not (inside or (_joins(after, answer[-1]) and after not in stripped)):
            return False
        start = context.find(answer, start + 1)
    return True


def _joins(outside: str, inside: str) -> bool:
    """Return whether a character next to an answer belongs to the word at its end or start."""
    if not outside or outside in MARKS_OF_DIRECTION or not (is_wordlike(outside) or is_extender(outside)):
        return False
    return not is_unspaced(outside) and not is_unspaced(inside)


def _unfilled(cases: Sequence[Case]) -> Iterator[Finding]:
    found = []
    for case in cases:
        for example in case.examples:
            text = example.context + example.question + example.answer
            if "{" in text or "}" in text:
                found.append((case, example))
                break
    if found:
        case, example = found[0]
        message = f"{len(found)} of {len(cases)} cases have braces in their texts."
        yield _finding("unfilled-placeholder", case, message, len(found), _shown(example))


def _counts(cases: Sequence[Case], counts: Counter[int], usual: int) -> Iterator[Finding]:
    for size, times in sorted(counts.items()):
        if size != usual:
            these = [case for case in cases if len(case.examples) == size]
            others = [case for case in cases if case.examples and len(case.examples) != size]
            message = (
                f"{times} of {len(cases)} cases have {size} examples, not {usual}{_drawn(these, others)}."
            )
            yield _finding("example-count", these[0], message, times, _shown(these[0].examples[0]))


def _drawn(these: Sequence[Case], others: Sequence[Case]) -> str:
    """Return a clause that names a slot whose fill-ins distinguish these cases from the others; empty without one."""
    for slot in these[0].fills if others else ():
        own = {case.fills.get(slot, "") for case in these}
        if len(own) <= 6 and not own & {case.fills.get(slot, "") for case in others}:
            return f": those where {slot} is {' or '.join(repr(value) for value in sorted(own))}"
    return ""


def _doubled_examples(cases: Sequence[Case]) -> Iterator[Finding]:
    found = []
    for case in cases:
        keys = Counter((example.context, example.question, example.answer) for example in case.examples)
        if len(keys) < len(case.examples):
            found.append((case, keys.most_common(1)[0][0]))
    if found:
        case, (context, question, answer) = found[0]
        message = f"{len(found)} of {len(cases)} cases ask one question about the same context twice."
        yield _finding("doubled-example", case, message, len(found), f"{context} | {question} -> {answer}")


def _doubled_cases(cases: Sequence[Case]) -> Iterator[Finding]:
    seen: dict[tuple[tuple[str, str, str], ...], str] = {}
    found = []
    for case in cases:
        if not case.examples:
            continue
        key = tuple((example.context, example.question, example.answer) for example in case.examples)
        if seen.setdefault(key, case.id) != case.id:
            found.append((case, seen[key]))
    if found:
        case, other = found[0]
        message = f"{len(found)} of {len(cases)} cases have the same texts as another; {case.id} is {other}."
        yield _finding("doubled-case", case, message, len(found), _shown(case.examples[0]))


def script_findings(cases: Sequence[Case], words: WordScripts) -> Iterator[Finding]:
    """Yield words in a foreign script in cases of one test and language, without their templates."""
    if not cases:
        return
    texts = {
        text for case in cases for one in case.examples for text in (one.context, one.question, one.answer)
    }
    scripts = language_scripts(cases[0].language, texts)
    words.learn(texts)
    for kind, side in (("foreign-script", words.foreign), ("mixed-script", words.mixed)):
        bad = {text: found[0] for text in texts if (found := side(text, scripts))}
        hit = [
            (case, one, text)
            for case in cases
            for one in case.examples
            if (text := next((t for t in (one.answer, one.question, one.context) if t in bad), None))
            is not None
        ]
        if hit:
            case, example, text = hit[0]
            number = len({case.id for case, _, _ in hit})
            own = "/".join(sorted(scripts))
            message = f"{number} of {len(cases)} cases have words outside of {own}: {bad[text]!r}."
            yield _finding(kind, case, message, number, _shown(example))
