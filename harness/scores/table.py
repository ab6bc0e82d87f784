"""The table of scores, a polars frame: its columns, and how it is read from runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from harness.languages.table import known_languages
from harness.storage.results import CellResult, MetricValue
from harness.storage.run_folder import Run

if TYPE_CHECKING:
    import polars as pl

Type = Literal["String", "Int64", "Float64", "Boolean"]
"""A type of polars."""


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """One column: its name, its type, what it holds, and how it is read; None where a cell or score has no value."""

    name: str
    type: Type
    meaning: str
    read: Callable[..., Any]


def _of_language(run: Run, cell: CellResult) -> tuple[str | None, str | None]:
    """Return the family and script of a cell's language, from its task or the language table."""
    spec = run.manifest.tasks.get(cell.task)
    if spec is not None and cell.language in spec.languages:
        return spec.languages[cell.language]
    language = known_languages().get(cell.language) if cell.language in known_languages() else None
    return (None, None) if language is None else (language.family, language.script)


def _fields(*columns: tuple[str, Type, str]) -> Iterator[ScoreColumn]:
    """Yield columns that hold a field of the cell; what an older run does not say is None."""
    for name, kind, meaning in columns:
        yield ScoreColumn(
            name, kind, meaning, lambda _, cell, name=name: getattr(cell, name) if cell.has(name) else None
        )


CELL_COLUMNS: tuple[ScoreColumn, ...] = (
    ScoreColumn("run", "String", "Folder of the run.", lambda run, _: str(run.path)),
    ScoreColumn("model", "String", "Name of the model.", lambda run, _: run.manifest.model_name),
    *_fields(
        ("task", "String", "Name of the task."),
        ("version", "Int64", "Version of the task."),
        ("language", "String", "Code of the language."),
    ),
    ScoreColumn("family", "String", "Family of the language.", lambda *of: _of_language(*of)[0]),
    ScoreColumn("script", "String", "ISO 15924 code of its script.", lambda *of: _of_language(*of)[1]),
    *_fields(
        ("protocol", "String", "How the model was prepared: zero_shot_transfer, prompted, frozen, ..."),
        ("method", "String", "How it was asked: head, rank, generate, embed, ..."),
        ("fit", "String", "Digest of the training, or none."),
    ),
    ScoreColumn(
        "view",
        "String",
        "Variant, prompt, shots and other conditions, as a JSON object with sorted keys.",
        lambda _, cell: json.dumps(cell.view, sort_keys=True),
    ),
    *_fields(
        ("seed", "Int64", "Seed of the run."),
        ("split", "String", "Split that was evaluated."),
        ("provenance", "String", "Source of the texts: original, human-translated, machine-translated, ..."),
    ),
    ScoreColumn(
        "data", "String", "Source of the data: hub, local or sample.", lambda run, _: run.results.run.data
    ),
    *_fields(
        ("n", "Int64", "Number of items."),
        ("seconds", "Float64", "Seconds that the model took."),
        ("status", "String", "ok, failed or skipped."),
        ("reason", "String", "Why there is no score."),
    ),
)
"""One value per cell."""


def _end(place: int) -> Callable[[MetricValue], float | None]:
    return lambda score: None if score.ci is None else score.ci[place]


METRIC_COLUMNS: tuple[ScoreColumn, ...] = (
    ScoreColumn("value", "Float64", "Score as a fraction.", lambda score: score.value),
    ScoreColumn("se", "Float64", "Standard error of the value.", lambda score: score.se),
    ScoreColumn("low", "Float64", "Lower end of the 95 % interval.", _end(0)),
    ScoreColumn("high", "Float64", "Upper end of the 95 % interval.", _end(1)),
    ScoreColumn("ci_method", "String", "How the interval was made.", lambda score: score.ci_method),
)
"""One value per cell and metric."""
METRIC = ScoreColumn("metric", "String", "Name of the metric.", str)
HEADLINE = ScoreColumn("headline", "Boolean", "Whether the task's score is this metric's.", bool)
COLUMNS = (*CELL_COLUMNS[:-1], METRIC, HEADLINE, *METRIC_COLUMNS, CELL_COLUMNS[-1])
"""All columns of the table, in its order."""


def read_scores(runs: Sequence[Run]) -> pl.DataFrame:
    """Return the scores of runs: one row per cell and metric, and one per cell without metrics.

    Its columns are `COLUMNS`; values are fractions, and null is what a cell does not have.
    """
    import polars as pl

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
