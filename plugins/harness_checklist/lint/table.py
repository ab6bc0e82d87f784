"""Prints a lint: a table of floors, languages by tests, then the findings by kind, each with an example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from harness_checklist.lint.case import Floor
from harness_checklist.lint.finding import KINDS, Finding
from harness_checklist.lint.linter import LintReport

__all__ = ["render_lint"]

LONGEST_EXAMPLE = 160
SHOWN_LANGUAGES = 16


def render_lint(report: LintReport, titles: Mapping[str, str], *, every: bool = False) -> Group:
    """Return the output of the command.

    Args:
        report: Floors and findings.
        titles: Test id -> short heading; a test without one is headed by its id.
        every: Whether every finding is printed, not one example of each kind.
    """
    parts: list[RenderableType] = [*_floors(report.floors, titles), Text("")]
    parts += list(_findings(report.findings, every=every))
    return Group(*parts)


def _floors(floors: Sequence[Floor], titles: Mapping[str, str]) -> Iterator[RenderableType]:
    languages = list(dict.fromkeys(floor.language for floor in floors))
    tests = list(dict.fromkeys(floor.test for floor in floors))
    cases, examples = sum(floor.cases for floor in floors), sum(floor.examples for floor in floors)
    yield Text(
        f"{len(languages)} languages, {len(tests)} tests: {cases:,} cases with {examples:,} examples checked."
    )
    cells = {(floor.language, floor.test): floor for floor in floors}
    with_floor = [
        code for code in languages if any(floor.language == code and floor.floor > 0 for floor in floors)
    ]
    if not with_floor:
        yield Text("No floor: every case can be passed by a system that copies the right span.")
        return
    yield Text("Floor: the error in percent that the templates force on every system that copies spans.\n")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("language")
    for test in tests:
        table.add_column(escape(titles.get(test, test)), justify="right")
    order = sorted(
        with_floor, key=lambda code: -sum(cells[code, test].floor for test in tests if (code, test) in cells)
    )
    for code in order:
        table.add_row(code, *(_percent(cells.get((code, test))) for test in tests))
    yield table
    clean = len(languages) - len(with_floor)
    cells_with = sum(floor.floor > 0 for floor in floors)
    yield Text(
        f"\n{cells_with} of {len(floors)} tests have a floor; {clean} of {len(languages)} languages have none."
    )


def _percent(floor: Floor | None) -> str:
    if floor is None:
        return "-"
    return f"{100 * floor.floor:.1f}" if floor.floor else "."


def _findings(findings: Sequence[Finding], *, every: bool) -> Iterator[RenderableType]:
    if not findings:
        yield Text("No findings.")
        return
    kinds = list(dict.fromkeys(finding.kind for finding in findings))
    yield Text(f"{len(findings):,} findings of {len(kinds)} kinds, the gravest first:")
    for kind in kinds:
        own = [finding for finding in findings if finding.kind == kind]
        yield Text(f"\n{kind}  {KINDS[kind]}: {_where(own)}", style="bold")
        for finding in own if every else own[:1]:
            yield from _one(finding, "" if every or len(own) == 1 else "for example ")


def _one(finding: Finding, before: str) -> Iterator[Text]:
    named = f"{finding.language} {finding.test}".strip()
    # The folder was named on the command line.
    place = f" ({finding.place.rpartition('/')[2]})" if finding.place else ""
    yield Text(f"  {before}{named}{place}: {finding.message}")
    if finding.example and finding.example not in finding.message:
        text = finding.example
        yield Text(f"    {text if len(text) <= LONGEST_EXAMPLE else text[:LONGEST_EXAMPLE] + ' ...'}")


def _where(findings: Sequence[Finding]) -> str:
    """Return how often each language has it: ``tr 2, kk 1``; the most frequent first."""
    counts = Counter(finding.language for finding in findings)
    shown = [f"{code} {count}" for code, count in counts.most_common(SHOWN_LANGUAGES)]
    more = len(counts) - len(shown)
    return f"{len(findings)} ({', '.join(shown)}{f' and {more} more languages' if more else ''})"
