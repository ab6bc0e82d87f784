"""The columns of the table of scores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from harness.languages.table import known_languages
from harness.storage.results import CellResult, MetricValue
from harness.storage.run_folder import Run

Type = Literal["String", "Int64", "Float64", "Boolean"]
"""A type of polars."""


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """One column: its name, its type, what it holds, and how it is read; None where a cell or score has no value."""

    name: str
    type: Type
    meaning: str
    read: Callable[..., Any]


def _spec_language(run: Run, cell: CellResult) -> tuple[str, str] | None:
    """Return the family and script of a cell's language, from its task or the language table."""
    spec = run.manifest.tasks.get(cell.task)
    if spec is not None and cell.language in spec.languages:
        return spec.languages[cell.language]
    table = known_languages()
    if cell.language not in table:
        return None
    language = table.get(cell.language)
    return language.family, language.script


def _family(run: Run, cell: CellResult) -> str | None:
    language = _spec_language(run, cell)
    return language and language[0]


def _script(run: Run, cell: CellResult) -> str | None:
    language = _spec_language(run, cell)
    return language and language[1]


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
    ScoreColumn("family", "String", "Family of the language.", _family),
    ScoreColumn("script", "String", "ISO 15924 code of its script.", _script),
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
        (
            "provenance",
            "String",
            "Where the texts come from: original, human-translated, machine-translated, ...",
        ),
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
