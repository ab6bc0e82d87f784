"""The scores of a report's languages and buckets with what is known of their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from harness.reporting.column import Column
from harness.reporting.contrast import Estimate
from harness.reporting.html.material import cells_of
from harness.reporting.unreadable import is_unreadable
from harness.storage.run_folder import Run

__all__ = ["estimate_of_row", "mean_of_others", "score_of"]

NORMAL = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


def score_of(run: Run, column: Column, code: str) -> Estimate | None:
    """Return the score of one language; that of several seeds is their mean, without an interval.

    Unreadable cells have none.
    """
    cells = cells_of(run, column, code)
    if any(map(is_unreadable, cells)):
        return None
    found = [
        (cell, cell["metrics"][column.metric])
        for cell in cells
        if cell["status"] == "ok" and column.metric in cell["metrics"]
    ]
    if len(found) == 1:
        [(cell, entry)] = found
        interval = entry.get("ci")
        return Estimate(
            value=entry["value"],
            se=entry.get("se"),
            interval=None if interval is None else (interval[0], interval[1]),
            draws=entry.get("clusters") or cell["n"],
        )
    return Estimate(value=fmean(entry["value"] for _, entry in found)) if found else None


def estimate_of_row(row: Mapping[str, Any]) -> Estimate | None:
    """Return the score of a bucket; None for an empty one."""
    if row["value"] is None:
        return None
    interval = None if row["ci"] is None else (row["ci"][0], row["ci"][1])
    return Estimate(value=row["value"], se=row["se"], interval=interval, draws=row["n"])


def mean_of_others(run: Run, column: Column, code: str, codes: Sequence[str]) -> Estimate | None:
    """Return the unweighted mean of the other languages, whose errors are taken as independent."""
    found = [score for other in codes if other != code if (score := score_of(run, column, other)) is not None]
    if not found:
        return None
    value = fmean(score.value for score in found)
    errors = [score.se for score in found if score.se is not None]
    if len(errors) < len(found):
        return Estimate(value=value)
    se = math.hypot(*errors) / len(found)
    interval = (max(0.0, value - NORMAL * se), min(1.0, value + NORMAL * se))
    return Estimate(value=value, se=se, interval=interval, draws=min(score.draws for score in found))
