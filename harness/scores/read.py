"""Reads the table of scores from runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from harness.scores.columns import CELL_COLUMNS, COLUMNS, METRIC_COLUMNS
from harness.storage.results import CellResult
from harness.storage.run_folder import Run


def read_scores(runs: Sequence[Run]) -> pl.DataFrame:
    """Return the scores of runs: one row per cell and metric, and one per cell without metrics.

    Its columns are `harness.scores.columns.COLUMNS`; values are fractions, and null is what a cell does not have.
    """
    rows = [row for run in runs for cell in run.cells for row in _rows(run, cell)]
    return pl.DataFrame(rows, schema={column.name: getattr(pl, column.type) for column in COLUMNS})


def _rows(run: Run, cell: CellResult) -> Iterator[dict[str, Any]]:
    shared = {column.name: column.read(run, cell) for column in CELL_COLUMNS}
    for metric, score in cell.metrics.items():
        headline = run.manifest.tasks[cell.task].headline
        values = {column.name: column.read(score) for column in METRIC_COLUMNS}
        yield {**shared, "metric": metric, "headline": metric in headline, **values}
    if not cell.metrics:
        yield shared
