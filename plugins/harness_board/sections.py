"""What runs add below the table of a board: means with added languages, costs of languages, failing cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness import Run
from harness.reporting.equity.report import EquityReport
from harness.reporting.equity.table import SIDE_LEGEND, side_notes, side_table
from harness.reporting.item_origin import ADDED
from harness.reporting.matrix import Matrix, matrices
from harness.reporting.model import Block, Fold, Notes, Section, Table, rows_of
from harness.reporting.score_table import error_table
from harness.reporting.sections import installed_sections, read_sections
from harness_board.document import Extension

__all__ = ["checklist_sections", "equity_section", "extension_section"]


def extension_section(found: Sequence[Extension]) -> Section | None:
    """Return the means with added languages as a section; None where there are none."""
    rows = rows_of(
        (
            one.system,
            one.name,
            "-" if one.published is None else f"{one.published:.1f}",
            f"{one.extended:.1f}{ADDED}",
            one.languages,
        )
        for one in found
    )
    table = Table(
        title="Means with the languages that others added; not comparable with published scores",
        corner="system",
        heads=("mean of", "published languages", f"with added ones {ADDED}", "added"),
        rows=rows,
        words=frozenset({0, 3}),
    )
    return Section(name="extended", title="With added languages", blocks=[table]) if found else None


def equity_section(
    report: EquityReport | None, *, task: str | None = None, language: str | None = None
) -> Section | None:
    """Return the table over all tasks, or over one, of all languages, or of one; None where nothing was counted.

    Args:
        report: Of the board's runs.
        task: The task that the page is about; each way in which a system ran it is a system of its own there.
        language: The language that the page is about.
    """
    if report is None:
        return None
    tables = [own for own in report.tables if own.task == task] if task else list(report.overall)
    if not any(language in {None, row.code} for own in tables for row in own.rows):
        return None
    systems = [own.system for own in tables]
    names = [
        f"{own.system} ({own.protocol} {own.method} {own.view}".rstrip() + ")"
        if systems.count(own.system) > 1
        else own.system
        for own in tables
    ]
    table = side_table(f"Of {task or 'all tasks'}, by system", tables, names, language=language)
    shown = replace(table, notes=(*side_notes(tables), *SIDE_LEGEND))
    return Section(name="equity", title="What the languages cost", blocks=[shown])


def checklist_sections(runs: Sequence[Run]) -> dict[str, tuple[Section, ...]]:
    """Return what the checklists of runs show, by task; other tasks have no entry."""
    found: dict[str, tuple[Section, ...]] = {}
    for run in runs:
        for matrix in matrices(run, {}):
            if matrix.heat:
                task = matrix.title.partition(" ")[0]
                title = f"{run.results.model.ref}: errors by language and test"
                blocks = list(_errors(run, task, matrix))
                own = Section(name="checklist", title=title, blocks=blocks)
                found[task] = (*found.get(task, ()), own)
    return found


def _errors(run: Run, task: str, matrix: Matrix) -> Iterator[Block]:
    """Yield the error rates of a checklist, and what plugins show of it."""
    yield error_table(matrix)
    for section, report in read_sections([run], installed_sections()).items():
        own = report.of_task(task)
        if own is not None:
            yield Notes(own.notes)
            yield from [Fold(title=section.title, blocks=own.blocks)] if own.blocks else []
