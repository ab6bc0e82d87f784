"""The lint of a suite or of generated cases: error floors and other faults, as records and as printed tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from harness.cli import echo, print_table
from harness.languages import is_extender, is_unspaced, is_wordlike
from harness_checklist.case import Case, CaseExample, case_defect, example_defects
from harness_checklist.checking import faults_of
from harness_checklist.generation import draw_cases
from harness_checklist.suite import LanguageSuite, Profile, Suite

_KINDS: Final[Mapping[str, str]] = {
    "bad-template": "Templates that cannot be filled: no case can be made",
    "missing-test": "Tests that are missing in a language",
    "empty": "Cases without examples: no variant of the templates applies; they count as failed",
    "contradictory": "Cases in which one context and question has two answers: no model can pass",
    "unanswerable": "Cases whose answer is no span of the context: a model that copies cannot pass",
    "inside-word": "Cases whose answer is in the context only inside longer words",
    "unfilled-placeholder": "Braces left in generated text",
    "example-count": "Cases with more or fewer examples than usual: variants overlap, or are missing",
    "doubled-example": "Cases that ask the same question about the same context twice",
    "doubled-case": "Cases with the same texts as another case",
}
"""The kinds of findings, the gravest first, each with what it means."""
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
CASES = 200
"""How many cases of every test and language are drawn for its floor, as in the paper (XTREME-R 3.4)."""
LONGEST_EXAMPLE = 160
SHOWN_LANGUAGES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """One fault of a suite or of its cases; its fields are the columns of ``--findings``."""

    kind: str
    """A key of `_KINDS`."""
    language: str
    test: str
    message: str
    """A sentence."""
    place: str = ""
    """``file:line`` of a template, with the column of a sheet, or the id of a case; empty where neither is known."""
    count: int = 1
    """How many cases or fill-ins have it."""
    example: str = ""
    """A text that shows it."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """The floors of all languages and tests, and all findings, the gravest kinds first."""

    floors: tuple[Floor, ...]
    findings: tuple[LintFinding, ...]


def lint_suite(
    suite: Suite,
    *,
    languages: Sequence[str] | None = None,
    tests: Sequence[str] | None = None,
    n: int = CASES,
    seed: int = 0,
) -> LintReport:
    """Return floors and findings of a suite, over `n` cases of every test and language drawn under `seed`."""
    chosen, ids = (
        list(languages or suite.languages),
        [test for test in suite.tests if test in (tests or suite.tests)],
    )
    source = suite.languages.get(suite.source_language)
    usual: dict[str, int] = {}
    for test in ids:
        if source is not None and test in source.tests:
            sizes = [len(case.examples) for case in _cases(suite, test, source, 5, 0)]
            usual[test] = max(sizes, default=0)
    linted = []
    for code in chosen:
        spoken = suite.languages[code]
        for test in ids:
            if test in spoken.tests:
                cases = _cases(suite, test, spoken, n, seed)
                linted.append(
                    lint_cases(cases, spoken.profile, language=code, test=test, usual=usual.get(test))
                )
    return _report(linted, _template_findings(suite, chosen, ids))


def _template_findings(suite: Suite, languages: Sequence[str], tests: Sequence[str]) -> Iterator[LintFinding]:
    """Yield the templates that cannot be filled, and the tests that are missing."""
    for code in languages:
        language = suite.languages[code]
        for test in tests:
            if test in language.tests:
                faults = [
                    (f"{fault.message[:1].upper()}{fault.message[1:]}.", fault.place)
                    for fault in faults_of(language.tests[test], language.names)
                ]
                kind = "bad-template"
            else:
                faults = [(f"The test {suite.tests[test].title!r} is missing in this language.", None)]
                kind = "missing-test"
            for message, place in faults:
                shown = str(place or language.place or "")
                yield LintFinding(kind=kind, language=code, test=test, message=message, place=shown)


def lint_generated(cases: Iterable[Case], suite: Suite | None = None) -> LintReport:
    """Return floors and findings of cases that were generated before, by language and test as they come.

    Answers are compared as `suite` says for their language. Without a suite, or without the language, they are
    compared by the default profile: no articles, full stops and commas stripped.
    """
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.language, case.test), []).append(case)
    linted = []
    for (code, test), group in groups.items():
        language = None if suite is None else suite.languages.get(code)
        profile = Profile() if language is None else language.profile
        linted.append(lint_cases(group, profile, language=code, test=test))
    return _report(linted, ())


def _report(linted: Sequence[tuple[Floor, list[LintFinding]]], findings: Iterable[LintFinding]) -> LintReport:
    order = list(_KINDS)
    all_findings = [*findings, *(finding for _, case_findings in linted for finding in case_findings)]
    return LintReport(
        floors=tuple(floor for floor, _ in linted),
        findings=tuple(sorted(all_findings, key=lambda finding: order.index(finding.kind))),
    )


def _cases(suite: Suite, test: str, language: LanguageSuite, n: int, seed: int) -> tuple[Case, ...]:
    """Return the cases of a test; none where its templates are faulty (`_template_findings` reports these)."""
    if any(True for _ in faults_of(language.tests[test], language.names)):
        return ()
    return draw_cases(suite, test, language.language, n, seed).cases


def print_lint(report: LintReport, titles: Mapping[str, str], *, every: bool = False) -> None:
    """Print floors and findings.

    Args:
        report: Floors and findings.
        titles: Test id -> short heading; a test without one is headed by its id.
        every: Whether every finding is printed, not one example of each kind.
    """
    _print_floors(report.floors, titles)
    echo("")
    findings = report.findings
    if not findings:
        echo("No findings.")
        return
    kinds = list(dict.fromkeys(finding.kind for finding in findings))
    echo(f"{len(findings):,} findings of {len(kinds)} kinds, the gravest first:")
    for kind in kinds:
        kind_findings = [finding for finding in findings if finding.kind == kind]
        echo(f"\n{kind}  {_KINDS[kind]}: {_where(kind_findings)}")
        for finding in kind_findings if every else kind_findings[:1]:
            for line in _one(finding, "" if every or len(kind_findings) == 1 else "for example "):
                echo(line)


def _print_floors(floors: Sequence[Floor], titles: Mapping[str, str]) -> None:
    languages = list(dict.fromkeys(floor.language for floor in floors))
    tests = list(dict.fromkeys(floor.test for floor in floors))
    cases, examples = sum(floor.cases for floor in floors), sum(floor.examples for floor in floors)
    echo(
        f"{len(languages)} languages, {len(tests)} tests: {cases:,} cases with {examples:,} examples checked."
    )
    cells = {(floor.language, floor.test): floor.floor for floor in floors}
    sums = {code: sum(cells.get((code, test), 0) for test in tests) for code in languages}
    with_floor = sorted((code for code in languages if sums[code]), key=lambda code: -sums[code])
    if not with_floor:
        echo("No floor: every case can be passed by a system that copies the right span.")
        return
    echo("Floor: the error in percent that the templates force on every system that copies spans.\n")
    heads = ("language", *(titles.get(test, test) for test in tests))
    rows = [(code, *(_percent(cells.get((code, test))) for test in tests)) for code in with_floor]
    print_table(heads, rows)
    clean = len(languages) - len(with_floor)
    with_any = sum(floor > 0 for floor in cells.values())
    echo(
        f"\n{with_any} of {len(floors)} tests have a floor; {clean} of {len(languages)} languages have none."
    )


def _percent(floor: float | None) -> str:
    return "-" if floor is None else f"{100 * floor:.1f}" if floor else "."


def _one(finding: LintFinding, before: str) -> Iterator[str]:
    label = f"{finding.language} {finding.test}".strip()
    # The folder was named on the command line.
    location = f" ({finding.place.rpartition('/')[2]})" if finding.place else ""
    yield f"  {before}{label}{location}: {finding.message}"
    if finding.example and finding.example not in finding.message:
        text = finding.example
        yield f"    {text if len(text) <= LONGEST_EXAMPLE else text[:LONGEST_EXAMPLE] + ' ...'}"


def _where(findings: Sequence[LintFinding]) -> str:
    """Return how often each language has it: ``tr 2, kk 1``; the most frequent first."""
    counts = Counter(finding.language for finding in findings)
    frequent = [f"{code} {count}" for code, count in counts.most_common(SHOWN_LANGUAGES)]
    more = len(counts) - len(frequent)
    return f"{len(findings)} ({', '.join(frequent)}{f' and {more} more languages' if more else ''})"
