"""The cells of runs as rows of plain values: what csv and json reports hold."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from harness.storage.run_folder import Run

__all__ = ["cell_rows", "inert", "render_csv", "render_json"]

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


def cell_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return one row for every metric of every cell, and one for every cell without metrics; fractions in [0, 1]."""
    rows = []
    for run in runs:
        for cell in run.cells:
            shared = {
                "model": run.manifest["model"],
                "data": run.results["run"]["data"],
                "view": json.dumps(cell.get("view", {}), sort_keys=True),
                **{name: cell.get(name) for name in COLUMNS if name in cell and name not in {"data", "view"}},
            }
            for metric, score in (cell["metrics"] or {None: None}).items():
                low, high = (score or {}).get("ci") or (None, None)
                rows.append(
                    {
                        **dict.fromkeys(COLUMNS),
                        **shared,
                        "metric": metric,
                        "value": None if score is None else score["value"],
                        "se": None if score is None else score["se"],
                        "ci_low": low,
                        "ci_high": high,
                        "ci_method": None if score is None else score["ci_method"],
                    }
                )
    return rows


def render_csv(runs: Sequence[Run]) -> str:
    """Return the rows as CSV with a header; a field that a spreadsheet would run as a formula gets a quote."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in cell_rows(runs):
        writer.writerow({name: inert(value) for name, value in row.items()})
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
    content = {**runs[0].results, "baselines": [run.results for run in runs[1:]]}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"
