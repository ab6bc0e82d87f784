"""The table of scores, a polars frame: ``columns.tsv`` says what its columns are, this module how runs fill them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.languages.table import known_languages
from harness.storage.results import CellResult
from harness.storage.run_folder import Run
from harness.table import table_rows

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """One column: its name, its type of polars and what it holds; None where a cell or score has no value."""

    name: str
    type: str
    meaning: str


COLUMNS = tuple(ScoreColumn(**row) for row in table_rows("harness.scores", "columns.tsv"))
"""All columns of the table, in its order."""


def read_scores(runs: Sequence[Run]) -> pl.DataFrame:
    """Return the scores of runs: one row per cell and metric, and one per cell without metrics.

    Its columns are `COLUMNS`; values are fractions, and null is what a cell does not have.
    """
    import polars as pl

    rows = [row for run in runs for cell in run.cells for row in _rows(run, cell)]
    return pl.DataFrame(rows, schema={column.name: getattr(pl, column.type) for column in COLUMNS})


def _rows(run: Run, cell: CellResult) -> Iterator[dict[str, Any]]:
    family, script = _family_and_script(run, cell)
    # What an older run does not have is None.
    shared = {column.name: getattr(cell, column.name) for column in COLUMNS if cell.has(column.name)}
    shared |= {
        "run": str(run.path),
        "model": run.manifest.model_name,
        "family": family,
        "script": script,
        "view": json.dumps(cell.view, sort_keys=True),
        "data": run.results.run.data,
    }
    for metric, score in cell.metrics.items():
        low, high = score.ci or (None, None)
        numbers = {"value": score.value, "se": score.se, "low": low, "high": high}
        is_headline = metric in run.manifest.tasks[cell.task].headline
        yield {**shared, "metric": metric, "headline": is_headline, **numbers, "ci_method": score.ci_method}
    if not cell.metrics:
        yield shared


def _family_and_script(run: Run, cell: CellResult) -> tuple[str | None, str | None]:
    """Return the family and script of a cell's language, from its task or the language table."""
    spec = run.manifest.tasks.get(cell.task)
    if spec is not None and cell.language in spec.languages:
        return spec.languages[cell.language]
    language = known_languages().get(cell.language) if cell.language in known_languages() else None
    return (None, None) if language is None else (language.family, language.script)
