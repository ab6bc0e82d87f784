"""Prints a lint: a table of floors, languages by tests, then the findings by kind, each with an example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from harness.cli import echo, print_table
from harness_checklist.lint.case import Floor
from harness_checklist.lint.finding import KINDS, LintFinding
from harness_checklist.lint.linter import LintReport

LONGEST_EXAMPLE = 160
SHOWN_LANGUAGES = 16


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
        echo(f"\n{kind}  {KINDS[kind]}: {_where(kind_findings)}")
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
