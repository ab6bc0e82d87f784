"""Scores by language as colours, matrices, and the cells that have no score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.reporting.blocks.heat import SCALES, heat_class, levels
from harness.reporting.blocks.model import Block, Field, Fold, Note, Ramp, Table, TableRow, anchor, rows_of
from harness.reporting.blocks.number import INTERVAL_LEGEND, percent, score_field
from harness.reporting.blocks.remark import counted
from harness.reporting.blocks.score import Score
from harness.reporting.overview.column import Column, cells_of
from harness.reporting.overview.material import Material
from harness.reporting.overview.matrix import Matrix
from harness.reporting.overview.summary import SkippedGroup, Summary, summarise
from harness.reporting.overview.summary_blocks import mark_legend, matrix_table, score_shades
from harness.storage.run_folder import Run

LEGEND = (
    "Colours go from chance (0 where it is not known) to 100 in every column. From the best language down, those that "
    "do not differ measurably from the first of their colour have the same one; the number says how much. -: no score, "
    "“How it was made” lists the reasons."
)


def score_blocks(material: Material) -> list[Block]:
    """Return languages against tasks of every given run, by family, with the means of scripts."""
    if not any(section.rows for section in material.summary.sections):
        return []
    blocks: list[Block] = [Note(LEGEND + mark_legend(material.summary), "note")]
    for number, run in enumerate(material.runs):
        summary = material.summary if number == 0 else summarise([run])
        table = _score_table(material, run, summary)
        blocks.append(table if number == 0 else Fold(title=f"Scores of {material.name(run)}", blocks=[table]))
    return blocks


def _score_table(material: Material, run: Run, summary: Summary) -> Table:
    """Return the scores of a run as colours: a row per language under its family, the means at the end."""
    columns, sections = summary.columns, summary.sections
    shades = score_shades(summary)
    pages = {code for code, _, _ in material.languages}
    rows: list[TableRow] = []
    for section in sections:
        means = section.means or (Score(mark=" "),) * len(columns)
        rows.append(TableRow(label=section.family, fields=tuple(map(score_field, means)), style="head"))
        for code, name, scores in section.rows:
            label = Field(
                text=f"{name} ({code})", href=f"#{anchor('language', code)}" if code in pages else ""
            )
            fields = (
                _field(score, run, column, code, shades[code, index])
                for index, (score, column) in enumerate(zip(scores, columns, strict=True))
            )
            rows.append(TableRow(label=label, fields=tuple(fields)))
    if summary.scripts:
        rows.append(TableRow(label="By script", style="head"))
    for script, scores in summary.scripts:
        rows.append(TableRow(label=script, fields=tuple(map(score_field, scores)), depth=1))
    if summary.means:
        rows.append(TableRow(label="All languages", style="head"))
    for title, scores in summary.means:
        rows.append(TableRow(label=title, fields=tuple(map(score_field, scores)), style="bold"))
    for title, texts in summary.counts:
        rows.append(TableRow(label=title, fields=texts, style="dim"))
    return Table(
        title=f"Scores of {material.name(run)}, times 100; {INTERVAL_LEGEND}",
        corner="language",
        heads=tuple(column.title for column in columns),
        rows=tuple(rows),
        style="heat scores",
        ramp="score",
        ramp_low="chance, or 0 where it is not known",
    )


def _field(score: Score, run: Run, column: Column, code: str, shade: str) -> Field:
    field = score_field(score)
    if score.value is None:
        return Field(text=field.text.strip() or "-", shade="absent")
    seeds = [
        cell.metrics[column.metric].value
        for cell in cells_of(run, column, code)
        if column.metric in cell.metrics
    ]
    if len(seeds) > 1:
        field = replace(field, small=f"(seeds {', '.join(map(percent, seeds))})")
    return replace(field, shade=shade)


def error_table(matrix: Matrix) -> Table:
    """Return a matrix; one of error rates in the colours of errors, from 0 to 100."""
    table = matrix_table(matrix)
    return replace(table, rows=shaded_rows(matrix), style="heat", ramp="error") if matrix.heat else table


def shaded_rows(matrix: Matrix) -> tuple[TableRow, ...]:
    """Return the rows of a matrix in the colours of errors or scores, from 0 to 100; all fields are compared."""
    fields = [score for _, scores in matrix.rows for score in scores]
    shades = iter(levels([field.value for field in fields], [field.reach for field in fields]))
    ramp: Ramp = "error" if matrix.heat else "score"
    return rows_of(
        (
            label,
            *(
                replace(score_field(score), shade=heat_class(next(shades), *SCALES[ramp], ramp=ramp))
                for score in scores
            ),
        )
        for label, scores in matrix.rows
    )


def missing_blocks(material: Material) -> list[Block]:
    """Return the cells without a score, by run, with the reasons; nothing where there are none."""
    blocks: list[Block] = []
    for index, run in enumerate(material.runs):
        groups = (material.summary if index == 0 else summarise([run])).skipped
        run_blocks = [*_skipped(groups), *_unlabelled(run)]
        heading = [Note(material.name(run), "heading")] if len(material.runs) > 1 else []
        blocks += [*heading, *run_blocks] if run_blocks else []
    return blocks


def _unlabelled(run: Run) -> Iterator[Table]:
    """Yield the cells that were answered and could not be scored."""
    tasks: dict[str, list[str]] = {}
    for cell in run.cells:
        if cell.status == "ok" and not cell.is_scored:
            tasks.setdefault(cell.task, []).append(cell.language)
    if tasks:
        count = sum(map(len, tasks.values()))
        yield Table(
            title=f"Answered, but the test file has no labels: {counted(count, 'cell')}",
            corner="task",
            heads=("languages",),
            rows=rows_of((task, " ".join(dict.fromkeys(codes))) for task, codes in tasks.items()),
            words=frozenset({0}),
        )


def _skipped(groups: Sequence[SkippedGroup]) -> Iterator[Block]:
    for status, title in (("failed", "Failed"), ("skipped", "Skipped")):
        status_groups = [group for group in groups if group.status == status]
        count = sum(group.cells for group in status_groups)
        table = Table(
            title=f"{title}: {counted(count, 'cell')}",
            corner="task",
            heads=("protocol", "languages", "reason"),
            rows=rows_of(
                (group.task, group.protocol or "-", " ".join(group.languages), group.reason)
                for group in status_groups
            ),
            words=frozenset({0, 1, 2}),
        )
        if status_groups:
            yield table
