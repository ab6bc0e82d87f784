"""The summary of runs as blocks: the table of languages and tasks, matrices, suites, sections of plugins, notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.reporting.console import SAMPLE_WARNING, shown_parts
from harness.reporting.formats import ReportSection
from harness.reporting.matrix import Matrix
from harness.reporting.model import Block, Field, Note, Notes, Table, TableRow, rows_of
from harness.reporting.number import HALF_LEGEND, INTERVAL_LEGEND, score_field
from harness.reporting.score import Score
from harness.reporting.suite import SuiteTable
from harness.reporting.summary import SkippedGroup, Summary

__all__ = [
    "matrix_blocks",
    "matrix_table",
    "part_blocks",
    "skipped_blocks",
    "suite_table",
    "summary_blocks",
    "terminal_blocks",
]

LABEL_WIDTH = 22
WIDEST_LABEL = 30
"""In the small tables, whose rows may be paths of models."""


def summary_blocks(summary: Summary) -> list[Block]:
    """Return the whole summary for a document."""
    return [
        *_warning(summary),
        *([_table(summary, range(len(summary.columns)))] if summary.columns else []),
        *map(matrix_table, summary.matrices),
        *map(suite_table, summary.suites),
        *(block for report in summary.shown_extra for block in (*report.blocks, Notes(report.notes))),
        Note(f"Scores x100. {INTERVAL_LEGEND}. Mean: unweighted over languages."),
        Notes(summary.notes),
        *skipped_blocks(summary.skipped),
    ]


def terminal_blocks(summary: Summary, *, width: int) -> list[Block]:
    """Return the summary for a terminal: large matrices have one line, and no score is shown twice."""
    shown = [place for place, column in enumerate(summary.columns) if column.key not in summary.covered]
    table = _table(summary, shown) if shown else None
    legend = "Scores x100."
    if table is not None and (text := _interval_legend(table, width)):
        legend += f" {text}."
    legend += " In family rows: the mean." if shown else ""
    return [
        *_warning(summary),
        Note(summary.title, "heading"),
        *([] if table is None else [table]),
        *matrix_blocks(summary, brief=True),
        *map(suite_table, summary.suites),
        *(block for report in summary.shown_extra for block in report.brief_blocks),
        Note(f"{legend} Mean: unweighted over languages. Transfer gap: source minus the others."),
        Notes(summary.notes),
        *skipped_blocks(summary.skipped),
    ]


def part_blocks(summary: Summary, section: ReportSection) -> list[Block]:
    """Return one section of a plugin with all its tables."""
    report = summary.extra.get(section)
    whole = [] if report is None else [*report.blocks, Notes(report.notes)]
    return [*_warning(summary), *(whole or [Note(section.empty)])]


def _warning(summary: Summary) -> list[Block]:
    return [Note(SAMPLE_WARNING, "warning")] if summary.sample else []


def _interval_legend(table: Table, width: int) -> str:
    """Return what is printed after scores in a terminal; nothing where there is no space for it."""
    if not shown_parts(table, width)[1]:
        return ""
    smalls = [own.small for row in table.rows for own in row.fields if isinstance(own, Field)]
    return INTERVAL_LEGEND if any("–" in small for small in smalls) else HALF_LEGEND


def _table(summary: Summary, shown: Sequence[int]) -> Table:
    return Table(
        title=summary.title,
        untitled=True,
        corner="language",
        heads=tuple(summary.columns[place].title for place in shown),
        rows=tuple(_rows(summary, shown)),
        label_width=LABEL_WIDTH,
        divided=True,
    )


def _rows(summary: Summary, shown: Sequence[int]) -> Iterator[TableRow]:
    def fields(scores: Sequence[Score]) -> tuple[Field, ...]:
        return tuple(score_field(scores[place]) for place in shown)

    for part in summary.sections:
        means = part.means or (Score(mark=" "),) * len(summary.columns)
        yield TableRow(label=part.family, fields=fields(means), style="head", optional=True)
        for code, name, scores in part.rows:
            label = Field(text=f"{name} ({code})", short=f"{code:<3} {name}")
            ends = code == part.rows[-1][0]
            yield TableRow(label=label, fields=fields(scores), depth=1, optional=True, ends=ends)
    if summary.scripts:
        yield TableRow(label="By script", style="head")
        for script, scores in summary.scripts:
            ends = script == summary.scripts[-1][0]
            yield TableRow(label=script, fields=fields(scores), depth=1, optional=True, ends=ends)
    for title, scores in summary.means:
        yield TableRow(
            label=title,
            fields=fields(scores),
            style="bold" if title == "mean" else "",
            optional=title.startswith("published "),
        )
    for title, texts in summary.counts:
        yield TableRow(label=title, fields=tuple(texts[place] for place in shown), style="dim")


def suite_table(suite: SuiteTable) -> Table:
    """Return the scores of a suite."""
    return Table(
        title=suite.title,
        corner="model",
        heads=suite.heads,
        rows=rows_of((label, *map(score_field, scores)) for label, scores in suite.rows),
        notes=suite.notes,
        label_width=WIDEST_LABEL,
        terse=True,
    )


def matrix_table(matrix: Matrix) -> Table:
    """Return the scores of a matrix."""
    return Table(
        title=matrix.title,
        corner=matrix.corner,
        heads=matrix.columns,
        rows=rows_of((label, *map(score_field, scores)) for label, scores in matrix.rows),
        notes=matrix.notes,
        label_width=WIDEST_LABEL,
        terse=True,
    )


def matrix_blocks(summary: Summary, *, brief: bool = False) -> list[Block]:
    """Return the matrices of a summary, with `brief` one line for large ones and none for those shown elsewhere."""
    # A section that covers a task shows its axis too.
    covered = {task for task, _, _ in summary.covered} if brief else set()
    return [
        matrix_table(matrix)
        if matrix.is_small or not brief
        else Note(f"{matrix.title}: {matrix.notes[0]} The matrix: harness report RUN --matrices")
        for matrix in summary.matrices
        if matrix.task not in covered
    ]


def skipped_blocks(groups: Sequence[SkippedGroup]) -> list[Block]:
    """Return what was skipped or failed, with the reasons."""
    found: list[Block] = []
    for status, title in (("failed", "Failed"), ("skipped", "Skipped")):
        own = [group for group in groups if group.status == status]
        count = sum(group.cells for group in own)
        if own:
            found.append(Note(f"{title}: {count} {'cell' if count == 1 else 'cells'}", "subheading"))
            found.append(Notes([_reason(group) for group in own]))
    return found


def _reason(group: SkippedGroup) -> str:
    named = group.task + (f" ({group.protocol})" if group.protocol else "")
    return f"{named} {' '.join(group.languages)}: {group.reason}"
