"""Matrices as files: tables of scores, averages and queries, rows of plain values, and figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.errors import UsageError
from harness.reporting.blocks.model import Block, Note, Notes, Table, TileMap, as_field, rows_of
from harness.reporting.overview.figure import Figure
from harness.reporting.overview.matrix import Matrix, matrices
from harness.reporting.overview.score_table import shaded_rows
from harness.reporting.overview.summary_blocks import matrix_table
from harness.reporting.overview.system_name import system_names
from harness.reporting.render.latex import render_latex
from harness.reporting.render.markdown import render_markdown
from harness.reporting.render.rows import csv_text
from harness.storage.run_folder import Run

Render = Callable[[Sequence[Run]], str]


def matrix_report(runs: Sequence[Run], *, in_terminal: bool = False) -> list[Block]:
    """Return all matrices of runs: scores, and in documents the means and numbers of queries that notes sum up."""
    blocks: list[Block] = []
    for name, matrix in _named(runs):
        title = f"{name}: {matrix.title}"
        if matrix.rows:
            blocks.append(replace(matrix_table(matrix), title=title))
        else:
            blocks += [Note(title, "subheading"), Notes(matrix.notes)]
        blocks += [] if in_terminal else _query_tables(title, matrix)
    return blocks or [Note("This run has no matrix.")]


def _named(runs: Sequence[Run]) -> Iterator[tuple[str, Matrix]]:
    for run, name in zip(runs, system_names(runs), strict=True):
        yield from ((name, matrix) for matrix in matrices(run))


def _query_tables(title: str, matrix: Matrix) -> Iterator[Block]:
    if matrix.averages:
        averages = (
            (label, f"{micro * 100:.1f}", f"{macro * 100:.1f}") for label, micro, macro in matrix.averages
        )
        yield Table(
            title=f"{title}: means over pairs of languages",
            corner="pairs",
            heads=("mean of queries", "mean of pairs"),
            rows=rows_of(averages),
        )
    if len(set(matrix.counts.values())) > 1:
        yield _count_table(title, matrix)


def _count_table(title: str, matrix: Matrix) -> Table:
    """Return the queries of every pair with their totals, as XTREME-R's Table 9."""
    rows = dict.fromkeys(row for row, _ in matrix.counts)
    columns = dict.fromkeys(column for _, column in matrix.counts)
    lines = [(row, [matrix.counts.get((row, column), 0) for column in columns]) for row in rows]
    lines.append(("Total", [sum(counts) for counts in zip(*(counts for _, counts in lines), strict=True)]))
    return Table(
        title=f"{title}: queries",
        corner=matrix.corner,
        heads=(*columns, "Total"),
        rows=rows_of((row, *(f"{count:,}" for count in (*counts, sum(counts)))) for row, counts in lines),
    )


def matrix_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return a row per field of every matrix: its model, title, row, column, score as a fraction, and queries."""
    rows = []
    for name, matrix in _named(runs):
        scores = {
            (row, column): score.value
            for row, fields in matrix.rows
            for column, score in zip(matrix.columns, fields, strict=True)
        }
        rows += [
            {
                "model": name,
                "matrix": matrix.title,
                "row": row,
                "column": column,
                "value": scores.get((row, column)),
                "n": matrix.counts.get((row, column)),
            }
            for row, column in dict.fromkeys([*scores, *matrix.counts])
        ]
    return rows


_FORMATS: Mapping[str, Render] = {
    "csv": lambda runs: csv_text(matrix_rows(runs)),
    "json": lambda runs: json.dumps(matrix_rows(runs), ensure_ascii=False, indent=1) + "\n",
    "latex": lambda runs: render_latex(matrix_report(runs)),
    "markdown": lambda runs: render_markdown(matrix_report(runs)).lstrip(),
}


def matrix_format(name: str, whole: Render) -> Render:
    """Return the function that writes the matrices alone as `name`; `whole` where that is a format of figures.

    Raises `UsageError` for ``html``, which has no such page.
    """
    if name == "html":
        raise UsageError(
            "--matrices cannot be written as 'html', whose page has all matrices: omit --matrices.",
            hint=f"Other formats: {', '.join(_FORMATS)}, svg, pdf, png.",
        )
    return _FORMATS.get(name, whole)


def matrix_figure(matrix: Matrix, name: str) -> Figure:
    """Return a matrix as colours from 0 to 100, those of errors where it has error rates; in the order of its table."""
    rows = [(str(row.label), list(map(as_field, row.fields))) for row in shaded_rows(matrix)]
    columns = [(column, column) for column in matrix.columns]
    chart = TileMap(title=matrix.title, families=(), languages=columns, rows=rows, corner=matrix.corner)
    return Figure(title=matrix.title, rows=[[chart]], notes=[name, *matrix.notes])
