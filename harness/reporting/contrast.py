"""Differences of two scores that are taken as independent, from their own standard errors and intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from harness.reporting.column import Column
from harness.reporting.material import cells_of
from harness.reporting.unreadable import is_unreadable
from harness.statistics import wilson
from harness.storage.run_folder import Run

__all__ = ["NORMAL", "Contrast", "Estimate", "contrast", "estimate_of_row", "mean_of_others", "score_of"]

NORMAL = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A score in [0, 1] with what is known of its uncertainty."""

    value: float
    se: float | None = None
    interval: tuple[float, float] | None = None
    """95 %."""
    draws: int = 0
    """Clusters, or single items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A score minus another one, as fractions."""

    difference: float
    low: float
    high: float
    p: float
    """Two-sided, of the normal distribution: for large samples."""


def contrast(one: Estimate, other: Estimate) -> Contrast | None:
    """Return the first minus the second, with a 95 % interval and p.

    The interval recovers the variances from the two intervals, each of its own kind (MOVER; Zou and Donner 2008).
    Where both are of the same items, as in parallel data, it is too wide rather than too narrow. None where an error or
    interval is unknown, or both errors are 0.
    """
    if one.se is None or other.se is None or one.interval is None or other.interval is None:
        return None
    se = math.hypot(one.se, other.se)
    if se == 0:
        return None
    difference = one.value - other.value
    return Contrast(
        difference=difference,
        low=difference - math.hypot(one.value - one.interval[0], other.interval[1] - other.value),
        high=difference + math.hypot(one.interval[1] - one.value, other.value - other.interval[0]),
        p=math.erfc(abs(difference) / se / math.sqrt(2)),
    )


def score_of(run: Run, column: Column, code: str) -> Estimate | None:
    """Return the score of one language; that of several seeds is their mean, without an interval.

    Unreadable cells have none.
    """
    cells = cells_of(run, column, code)
    if any(map(is_unreadable, cells)):
        return None
    found = [
        (cell, cell.metrics[column.metric])
        for cell in cells
        if cell.status == "ok" and column.metric in cell.metrics
    ]
    if len(found) == 1:
        [(cell, entry)] = found
        interval = None if entry.ci is None else (entry.ci[0], entry.ci[1])
        draws = entry.clusters or cell.n
        is_clustered = bool(run.manifest.specs.get(cell.task, {}).get("cluster")) and not entry.clusters
        if interval is None and entry.ci_method == "constant" and not is_clustered:
            interval = _constant_interval(entry.value, draws)
        return _estimate(entry.value, entry.se, interval, draws)
    return Estimate(value=fmean(entry.value for _, entry in found)) if found else None


def _constant_interval(value: float, draws: int) -> tuple[float, float] | None:
    """Return Wilson's interval of draws that are all wrong or all right; None where they are neither."""
    return wilson(value * draws, draws) if value in {0.0, 1.0} and draws else None


def _estimate(value: float, se: float | None, interval: tuple[float, float] | None, draws: int) -> Estimate:
    """Return a score; where all items are equal, its error is that of the reach of its interval, not 0."""
    if not se and interval is not None:
        se = max(value - interval[0], interval[1] - value) / NORMAL
    return Estimate(value=value, se=se, interval=interval, draws=draws)


def estimate_of_row(row: Mapping[str, Any]) -> Estimate | None:
    """Return the score of a bucket; None for an empty one."""
    if row["value"] is None:
        return None
    interval = None if row["ci"] is None else (row["ci"][0], row["ci"][1])
    return _estimate(row["value"], row["se"], interval, row["n"])


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
