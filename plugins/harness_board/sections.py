"""What runs add below the table of a board: means with added languages, costs of languages, failing cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness import Run
from harness.metrics import metric_name
from harness.reporting import (
    ADDED,
    SIDE_LEGEND,
    Block,
    EquityReport,
    Fold,
    Matrix,
    Notes,
    Section,
    Table,
    error_table,
    installed_sections,
    is_added,
    matrices,
    percent,
    read_sections,
    rows_of,
    side_notes,
    side_table,
)
from harness_board.run_reading import view_text


def extension_section(runs: Sequence[Run]) -> Section | None:
    """Return the means of suites and tasks with added languages, next to those without them; None without any."""
    rows = rows_of(
        (run.manifest.model_name, name, percent(published), f"{percent(extended)}{ADDED}", languages)
        for run in runs
        for name, published, extended, languages in [*_of_suites(run), *_of_tasks(run)]
    )
    table = Table(
        title="Means with the languages that others added; not comparable with published scores",
        corner="system",
        heads=("mean of", "published languages", f"with added ones {ADDED}", "added"),
        rows=rows,
        words=frozenset({0, 3}),
    )
    return Section(name="extended", title="With added languages", blocks=[table]) if rows else None


Means = Iterator[tuple[str, float | None, float, str]]
"""Name of a mean, its value over the published languages, its value over all, and the added languages."""


def _of_suites(run: Run) -> Means:
    for row in run.results.suites:
        extended = row.extended
        if extended is not None and extended.paper.value is not None:
            added = "; ".join(f"{task} {' '.join(codes)}" for task, codes in extended.languages.items())
            yield f"suite {row.suite}", row.paper.value, extended.paper.value, added


def _of_tasks(run: Run) -> Means:
    for row in run.results.tasks:
        added = [code for code in row.by_language if is_added(code, run.manifest.tasks[row.task])]
        if added and row.headline:
            published = [value for code, value in row.by_language.items() if code not in added]
            name = f"{row.task} ({metric_name(row.metric)}) {view_text(row.view)}".rstrip()
            mean = sum(published) / len(published) if published else None
            yield name, mean, row.value, " ".join(added)


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
    tables = [table for table in report.tables if table.task == task] if task else list(report.overall)
    if not any(language in {None, row.code} for table in tables for row in table.rows):
        return None
    systems = [table.system for table in tables]
    names = [
        f"{table.system} ({table.protocol} {table.method} {table.view}".rstrip() + ")"
        if systems.count(table.system) > 1
        else table.system
        for table in tables
    ]
    block = side_table(f"Of {task or 'all tasks'}, by system", tables, names, language=language)
    block = replace(block, notes=(*side_notes(tables), *SIDE_LEGEND))
    return Section(name="equity", title="What the languages cost", blocks=[block])


def checklist_sections(runs: Sequence[Run]) -> dict[str, tuple[Section, ...]]:
    """Return the checklist sections of runs, by task; other tasks have no entry."""
    sections: dict[str, tuple[Section, ...]] = {}
    for run in runs:
        for matrix in matrices(run):
            if matrix.heat:
                task = matrix.title.partition(" ")[0]
                title = f"{run.manifest.model_name}: errors by language and test"
                section = Section(name="checklist", title=title, blocks=list(_errors(run, task, matrix)))
                sections[task] = (*sections.get(task, ()), section)
    return sections


def _errors(run: Run, task: str, matrix: Matrix) -> Iterator[Block]:
    """Yield the error rates of a checklist, and what plugins show of it."""
    yield error_table(matrix)
    for section, report in read_sections([run], installed_sections()).items():
        if (of_task := report.of_task(task)) is not None:
            yield Notes(of_task.notes)
            yield from [Fold(title=section.title, blocks=of_task.blocks)] if of_task.blocks else []
