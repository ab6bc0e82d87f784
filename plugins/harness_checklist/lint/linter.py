"""The lint of a suite or of generated cases: error floors, and other faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness_checklist.generation.case import Case
from harness_checklist.generation.drawing import draw_cases
from harness_checklist.lint.case import Floor, lint_cases
from harness_checklist.lint.finding import KINDS, LintFinding
from harness_checklist.suites.checking import faults_of
from harness_checklist.suites.suite import LanguageSuite, Profile, Suite

CASES = 200
"""How many cases of every test and language are drawn for its floor, as in the paper (XTREME-R 3.4)."""


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
    order = list(KINDS)
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
