"""The lint of a suite or of generated cases: error floors, and other faults."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness_checklist.generation.case import Case
from harness_checklist.generation.drawing import draw_cases
from harness_checklist.lint.case import CaseLint, Floor, lint_cases, script_findings
from harness_checklist.lint.finding import KINDS, Finding
from harness_checklist.lint.script import WordScripts
from harness_checklist.lint.template import TestView, template_findings
from harness_checklist.lint.text import name_findings, text_findings
from harness_checklist.suites.checking import faults_of
from harness_checklist.suites.profile import Profile
from harness_checklist.suites.suite import LanguageSuite, Suite, TestDeclaration

__all__ = ["CASES", "LintReport", "floors", "lint_generated", "lint_suite", "lint_templates"]

CASES = 200
"""How many cases of every test and language are drawn for its floor, as in the paper (XTREME-R 3.4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """The floors of all languages and tests, and all findings, the gravest kinds first."""

    floors: tuple[Floor, ...]
    findings: tuple[Finding, ...]


def lint_suite(
    suite: Suite,
    *,
    languages: Sequence[str] | None = None,
    tests: Sequence[str] | None = None,
    n: int = CASES,
    seed: int = 0,
) -> LintReport:
    """Return floors and findings of a suite, over `n` cases of every test and language drawn under `seed`."""
    chosen = list(languages or suite.languages)
    ids = [test.id for test in suite.tests if not tests or test.id in tests]
    linted = _drawn(suite, chosen, ids, n, seed)
    found = [
        *lint_templates(suite, languages=chosen, tests=ids),
        *(f for lint in linted for f in lint.findings),
    ]
    return _report([lint.floor for lint in linted], found)


def floors(
    suite: Suite,
    *,
    languages: Sequence[str] | None = None,
    tests: Sequence[str] | None = None,
    n: int = CASES,
    seed: int = 0,
) -> list[Floor]:
    """Return the floor of every language and test of a suite, in their order."""
    ids = [test.id for test in suite.tests if not tests or test.id in tests]
    return [lint.floor for lint in _drawn(suite, list(languages or suite.languages), ids, n, seed)]


def lint_templates(
    suite: Suite, *, languages: Sequence[str] | None = None, tests: Sequence[str] | None = None
) -> list[Finding]:
    """Return what the templates and names show without a case being generated."""
    source = suite.languages.get(suite.source_language)
    words = WordScripts()
    found: list[Finding] = []
    for code in languages or suite.languages:
        language = suite.languages[code]
        if not tests or len(tests) == len(suite.tests):
            found += name_findings(language, words)
        for declared in suite.tests:
            if tests and declared.id not in tests:
                continue
            if declared.id not in language.tests:
                found.append(_missing(language, declared))
                continue
            view = TestView(
                language=language, test_id=declared.id, source=_source(language, source, declared.id)
            )
            found += template_findings(view)
            found += text_findings(view, words)
    return found


def lint_generated(cases: Iterable[Case], suite: Suite | None = None) -> LintReport:
    """Return floors and findings of cases that were generated before, by language and test as they come.

    Answers are compared as `suite` says for their language. Without a suite, or without the language, they are
    compared by the default profile: no articles, full stops and commas stripped.
    """
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.language, case.test), []).append(case)
    words = WordScripts()
    made, found = [], []
    for (code, test), group in groups.items():
        language = None if suite is None else suite.languages.get(code)
        profile = Profile() if language is None else language.profile
        lint = lint_cases(group, profile, language=code, test=test)
        made.append(lint.floor)
        found += [*lint.findings, *script_findings(group, words)]
    return _report(made, found)


def _report(made: Sequence[Floor], found: Sequence[Finding]) -> LintReport:
    order = {kind: number for number, kind in enumerate(KINDS)}
    return LintReport(
        floors=tuple(made), findings=tuple(sorted(found, key=lambda finding: order[finding.kind]))
    )


def _missing(language: LanguageSuite, declared: TestDeclaration) -> Finding:
    return Finding(
        kind="missing-test",
        language=language.language,
        test=declared.id,
        message=f"The test {declared.title!r} is missing in this language.",
        place=str(language.place or ""),
    )


def _source(language: LanguageSuite, source: LanguageSuite | None, test: str) -> TestView | None:
    if source is None or source is language or test not in source.tests:
        return None
    return TestView(language=source, test_id=test)


def _drawn(suite: Suite, languages: Sequence[str], tests: Sequence[str], n: int, seed: int) -> list[CaseLint]:
    usual = _usual(suite, tests)
    made = []
    for code in languages:
        language = suite.languages[code]
        for test in tests:
            if test not in language.tests:
                continue
            cases = _cases(suite, test, language, n, seed)
            made.append(lint_cases(cases, language.profile, language=code, test=test, usual=usual.get(test)))
    return made


def _cases(suite: Suite, test: str, language: LanguageSuite, n: int, seed: int) -> tuple[Case, ...]:
    """Return the cases of a test; none where its templates are faulty (`lint_templates` reports these)."""
    if any(True for _ in faults_of(language.tests[test], language.names)):
        return ()
    return draw_cases(suite, test, language.language, n, seed).cases


def _usual(suite: Suite, tests: Sequence[str]) -> dict[str, int]:
    """Return how many examples a case of every test has in the source language, by a few of its cases."""
    source = suite.languages.get(suite.source_language)
    if source is None:
        return {}
    found = {}
    for test in tests:
        if test in source.tests:
            sizes = [len(case.examples) for case in _cases(suite, test, source, 5, 0)]
            found[test] = max(sizes, default=0)
    return {test: size for test, size in found.items() if size}
