"""The summary of runs as blocks: the table of languages and tasks, matrices, suites, sections of plugins, notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from harness.reporting.blocks.heat import heat_class, levels
from harness.reporting.blocks.model import Block, Field, Note, Notes, Table, TableRow, rows_of
from harness.reporting.blocks.number import HALF_LEGEND, INTERVAL_LEGEND, score_field
from harness.reporting.blocks.remark import counted
from harness.reporting.blocks.score import Score
from harness.reporting.formats import ReportSection
from harness.reporting.overview.item_origin import ADDED, PROVENANCE_MARKS
from harness.reporting.overview.matrix import Matrix
from harness.reporting.overview.mean_row import OTHER_CELLS, OTHER_PROTOCOL
from harness.reporting.overview.suite import SuiteTable
from harness.reporting.overview.summary import SkippedGroup, Summary
from harness.reporting.overview.unreadable import UNREADABLE, WITH_UNREADABLE
from harness.reporting.render.console import SAMPLE_WARNING, shown_parts

Grouping = Literal["family", "script"]
"""Property that groups the rows of languages."""
MARKS = {
    "*": "scored on another split than test",
    "!": "the cell failed",
    **{mark: made for made, mark in PROVENANCE_MARKS.items()},
    ADDED: "added to the task by others",
    OTHER_CELLS: "over other cells or fewer languages, not comparable",
    OTHER_PROTOCOL: "under another protocol or prompt",
    WITH_UNREADABLE: "with unreadable cells",
    "°": "not comparable, as its source says",
}
"""The whole sentences are among the notes."""
LABEL_WIDTH = 22
WIDEST_PUBLISHED = 36
"""Of published systems, whose names differ at the end: `XLM-R Large ORIG, NLLB`."""
WIDEST_LABEL = 30
"""In the small tables, whose rows may be paths of models."""


def summary_blocks(summary: Summary) -> list[Block]:
    """Return the whole summary for a document."""
    return [
        *_warning(summary),
        *([language_table(summary)] if summary.columns else []),
        *map(matrix_table, summary.matrices),
        *map(suite_table, summary.suites),
        *(block for report in summary.shown_extra for block in (*report.blocks, Notes(report.notes))),
        Note(f"Scores x100. {INTERVAL_LEGEND}. Mean: unweighted over languages."),
        Notes(summary.notes),
        *skipped_blocks(summary.skipped),
    ]


def detail_blocks(summary: Summary, *, width: int, by: Grouping = "family") -> list[Block]:
    """Return the tables by language for a terminal: large matrices have one line, and no score is shown twice."""
    indices = [index for index, column in enumerate(summary.columns) if column.key not in summary.covered]
    table = _table(summary, indices, by=by) if indices else None
    legend = "Scores x100."
    if table is not None and (text := _interval_legend(table, width)):
        legend += f" {text}."
    legend += f" In the row of a {by}: the mean." if indices else ""
    return [
        Note(summary.title, "heading"),
        *([] if table is None else [table]),
        *matrix_blocks(summary, brief=True),
        *map(suite_table, summary.suites),
        *(block for report in summary.shown_extra for block in report.brief_blocks),
        Note(f"{legend} Mean: unweighted over languages. Transfer gap: source minus the others."),
        *([Note(marks.strip())] if (marks := mark_legend(summary)) else []),
        Note(""),
    ]


def mark_legend(summary: Summary) -> str:
    """Return the meanings of the marks after scores, as far as the tables have them; it follows other sentences."""
    rows = [scores for section in summary.sections for _, _, scores in section.rows]
    rows += [scores for _, scores in summary.means]
    rows += [scores for suite in summary.suites for _, scores in suite.rows]
    marks = {mark for scores in rows for score in scores if score.mark != UNREADABLE for mark in score.mark}
    texts = [f"{mark} {meaning}" for mark, meaning in MARKS.items() if mark in marks]
    return f" Marks: {', '.join(texts)}." if texts else ""


def note_blocks(summary: Summary) -> list[Block]:
    """Return all remarks on a run in whole sentences, and every reason why something has no score."""
    blocks: list[Block] = [Notes(summary.notes), *skipped_blocks(summary.skipped)]
    return blocks if summary.notes or summary.skipped else [Note("There is nothing to note about this run.")]


def part_blocks(summary: Summary, section: ReportSection) -> list[Block]:
    """Return one section of a plugin with all its tables."""
    report = summary.extra.get(section)
    blocks = [] if report is None else [*report.blocks, Notes(report.notes)]
    return [*_warning(summary), *(blocks or [Note(section.empty)])]


def _warning(summary: Summary) -> list[Block]:
    return [Note(SAMPLE_WARNING, "warning")] if summary.sample else []


def _interval_legend(table: Table, width: int) -> str:
    """Return the legend of the intervals after scores in a terminal; empty where there is no space for them."""
    if not shown_parts(table, width)[1]:
        return ""
    smalls = [field.small for row in table.rows for field in row.fields if isinstance(field, Field)]
    return INTERVAL_LEGEND if any("–" in small for small in smalls) else HALF_LEGEND


def language_table(summary: Summary) -> Table:
    """Return the table by language of all columns, with all means under it."""
    return _table(summary, range(len(summary.columns)), whole=True)


def _table(summary: Summary, shown: Sequence[int], *, by: Grouping = "family", whole: bool = False) -> Table:
    """Return the table by language of some columns; with `whole` the means of all scripts are under it."""
    return Table(
        title=summary.title,
        untitled=True,
        corner="language",
        heads=tuple(summary.columns[index].title for index in shown),
        rows=(*_language_rows(summary, shown, by), *_mean_rows(summary, shown, whole=whole)),
        label_width=max(
            LABEL_WIDTH,
            *(min(len(name), WIDEST_PUBLISHED) for name, _ in summary.means if name.startswith("published ")),
            0,
        ),
        divided=True,
    )


def _language_rows(summary: Summary, shown: Sequence[int], by: Grouping) -> Iterator[TableRow]:
    shades = score_shades(summary)
    for section in summary.sections if by == "family" else summary.by_script:
        means = section.means or (Score(mark=" "),) * len(summary.columns)
        yield TableRow(label=section.family, fields=_fields(means, shown), style="head", optional=True)
        for code, name, scores in section.rows:
            label = Field(text=f"{name} ({code})", short=f"{code:<3} {name}")
            fields = tuple(
                replace(field, shade=shades[code, index])
                for field, index in zip(_fields(scores, shown), shown, strict=True)
            )
            ends = code == section.rows[-1][0]
            yield TableRow(label=label, fields=fields, depth=1, optional=True, ends=ends)


def _mean_rows(summary: Summary, shown: Sequence[int], *, whole: bool) -> Iterator[TableRow]:
    if whole and summary.scripts:
        yield TableRow(label="By script", style="head")
        for script, scores in summary.scripts:
            ends = script == summary.scripts[-1][0]
            yield TableRow(label=script, fields=_fields(scores, shown), depth=1, optional=True, ends=ends)
    for title, scores in summary.means:
        yield TableRow(
            label=title,
            fields=_fields(scores, shown),
            style="bold" if title == "mean" else "",
            optional=title.startswith("published "),
        )
    for title, texts in summary.counts:
        yield TableRow(label=title, fields=tuple(texts[index] for index in shown), style="dim")


def _fields(scores: Sequence[Score], shown: Sequence[int]) -> tuple[Field, ...]:
    return tuple(score_field(scores[index]) for index in shown)


def score_shades(summary: Summary) -> dict[tuple[str, int], str]:
    """Return the class of every score, by language and place of its column; what differs by noise alone has one."""
    rows = [(code, scores) for section in summary.sections for code, _, scores in section.rows]
    shades: dict[tuple[str, int], str] = {}
    for index, low in enumerate(summary.lows):
        column_scores = [scores[index] for _, scores in rows]
        smoothed = levels([score.value for score in column_scores], [score.reach for score in column_scores])
        for (code, _), level in zip(rows, smoothed, strict=True):
            shades[code, index] = heat_class(level, low, 1.0)
    return shades


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
    """Return the skipped and failed cells, with the reasons."""
    blocks: list[Block] = []
    for status, title in (("failed", "Failed"), ("skipped", "Skipped")):
        status_groups = [group for group in groups if group.status == status]
        count = sum(group.cells for group in status_groups)
        if status_groups:
            blocks.append(Note(f"{title}: {counted(count, 'cell')}", "subheading"))
            blocks.append(Notes([_reason(group) for group in status_groups]))
    return blocks


def _reason(group: SkippedGroup) -> str:
    title = group.task + (f" ({group.protocol})" if group.protocol else "")
    return f"{title} {' '.join(group.languages)}: {group.reason}"
