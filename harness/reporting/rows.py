"""The cells of runs as rows of plain values: what csv and json reports hold."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.storage.run_folder import Run

__all__ = ["COLUMNS", "cell_rows", "csv_text", "inert", "render_csv", "render_json"]

COLUMNS = (
    "model",
    "task",
    "version",
    "language",
    "protocol",
    "method",
    "fit",
    "view",
    "seed",
    "split",
    "provenance",
    "data",
    "n",
    "status",
    "metric",
    "value",
    "se",
    "ci_low",
    "ci_high",
    "ci_method",
    "reason",
)


FORMULA = ("=", "+", "-", "@")
"""What a formula of a spreadsheet begins with, after white space too."""


def cell_rows(runs: Sequence[Run], names: Mapping[Path, str] | None = None) -> list[dict[str, Any]]:
    """Return one row for every metric of every cell, and one for every cell without metrics; fractions in [0, 1].

    Args:
        runs: Whose cells they are.
        names: What their models are called, by path of the run; their full names by default.
    """
    rows = []
    for run in runs:
        for cell in run.cells:
            shared = {
                "model": run.manifest.model if names is None else names[run.path],
                "data": run.results.run.data,
                "view": json.dumps(cell.view, sort_keys=True),
                **{
                    name: getattr(cell, name)
                    for name in COLUMNS
                    if cell.has(name) and name not in {"data", "view"}
                },
            }
            blank = {**dict.fromkeys(COLUMNS), **shared}
            for metric, score in cell.metrics.items():
                low, high = score.ci or (None, None)
                own = {"metric": metric, "value": score.value, "se": score.se, "ci_method": score.ci_method}
                rows.append({**blank, **own, "ci_low": low, "ci_high": high})
            if not cell.metrics:
                rows.append(blank)
    return rows


def render_csv(runs: Sequence[Run]) -> str:
    """Return the rows of cells as CSV."""
    return csv_text(cell_rows(runs), COLUMNS)


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
