"""The cells of runs as rows of plain values: what csv and json reports hold."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.scores.table import COLUMNS as SCORE_COLUMNS
from harness.storage.run_folder import Run

COLUMNS = {
    column.name: f"ci_{column.name}" if column.name in {"low", "high"} else column.name
    for column in SCORE_COLUMNS
    if column.name not in {"run", "family", "script", "headline", "seconds"}
}
"""Columns of the table of scores -> their names in csv and json reports."""


FORMULA = ("=", "+", "-", "@")
"""Characters that a formula of a spreadsheet begins with, after white space too."""


def cell_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return one row for every metric of every cell, and one for every cell without metrics; fractions in [0, 1]."""
    from harness.scores.table import read_scores  # polars takes a tenth of a second

    return read_scores(runs).select(*COLUMNS).rename(COLUMNS).to_dicts()


def render_csv(runs: Sequence[Run]) -> str:
    """Return the rows of cells as CSV."""
    return csv_text(cell_rows(runs), [*COLUMNS.values()])


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Return rows as CSV with a header, which are their names by default.

    A field that a spreadsheet would run as a formula gets a quote.
    """
    if not rows and not columns:
        return ""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns or list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: inert(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def inert(value: Any) -> Any:
    """Return a text that a spreadsheet would run as a formula with a quote before it; other values as they are.

    A carriage return becomes a line end, which is quoted: it would begin a new row.
    """
    if not isinstance(value, str):
        return value
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text


def render_json(runs: Sequence[Run]) -> str:
    """Return ``results.json`` of the first run with those of the others under ``baselines``."""
    content = {**runs[0].results.to_json(), "baselines": [run.results.to_json() for run in runs[1:]]}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"
