"""Differences of two scores: those of languages as the run keeps them, others from their standard errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from harness.reporting.overview.column import Column, cells_of
from harness.reporting.overview.mean_row import row_of
from harness.reporting.overview.memo import once_per_run
from harness.reporting.overview.unreadable import is_unreadable
from harness.statistics import NORMAL, wilson
from harness.storage.results import Difference
from harness.storage.run_folder import Run


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
    """Two-sided; of the normal distribution where it is not one that the run keeps."""
    is_paired: bool = False
    """Whether it is over the same items in both, as in parallel tasks."""


def contrast(one: Estimate, other: Estimate) -> Contrast | None:
    """Return the first minus the second, with a 95 % interval and p.

    The interval recovers the variances from the two intervals, each of its own kind (MOVER; Zou and Donner 2008).
    Where both are of the same items it is too wide rather than too narrow. None where an error or interval is unknown,
    or both errors are 0.
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


def from_others(run: Run, column: Column, code: str, codes: Sequence[str]) -> Contrast | None:
    """Return a language minus the mean of the others, as the run keeps it where these are its languages.

    Runs of older versions and means over fewer languages have it from the scores' own intervals, unpaired.
    """
    row, mean = row_of(run, column), mean_of_others(run, column, code, codes)
    score = score_of(run, column, code)
    scored = {*_scores(run, column, tuple(codes)), *([code] if score is not None else [])}
    difference = row.from_others.get(code) if row is not None and scored == set(row.by_language) else None
    if difference is not None:
        return _kept(difference)
    return None if score is None or mean is None else contrast(score, mean)


def from_source(run: Run, column: Column, code: str, source: str) -> Contrast | None:
    """Return a language minus the source language, as the run keeps it, or from the scores' own intervals."""
    row, score, origin = row_of(run, column), score_of(run, column, code), score_of(run, column, source)
    if score is None or origin is None:
        return None
    difference = row.from_source.get(code) if row is not None else None
    return contrast(score, origin) if difference is None else _kept(difference)


def _kept(difference: Difference) -> Contrast | None:
    if difference.ci is None or difference.p is None:
        return None
    is_paired = str(difference.ci_method).startswith("paired")
    return Contrast(
        difference=difference.value,
        low=difference.ci[0],
        high=difference.ci[1],
        p=difference.p,
        is_paired=is_paired,
    )


@once_per_run
def score_of(run: Run, column: Column, code: str) -> Estimate | None:
    """Return the score of one language; that of several seeds is their mean, with the interval that the run keeps.

    Unreadable cells have none.
    """
    cells = cells_of(run, column, code)
    if any(map(is_unreadable, cells)):
        return None
    pairs = [
        (cell, cell.metrics[column.metric])
        for cell in cells
        if cell.status == "ok" and column.metric in cell.metrics
    ]
    if len(pairs) == 1:
        [(cell, entry)] = pairs
        interval = None if entry.ci is None else (entry.ci[0], entry.ci[1])
        draws = entry.clusters or cell.n
        is_clustered = bool(run.manifest.specs.get(cell.task, {}).get("cluster")) and not entry.clusters
        if interval is None and entry.ci_method == "constant" and not is_clustered:
            interval = _constant_interval(entry.value, draws)
        return _estimate(entry.value, entry.se, interval, draws)
    row = row_of(run, column) if pairs else None
    if row is not None and code in row.over_seeds:
        seed_mean = row.over_seeds[code]
        return Estimate(
            value=row.by_language[code], se=seed_mean.se, interval=seed_mean.ci, draws=seed_mean.clusters or 0
        )
    return Estimate(value=fmean(entry.value for _, entry in pairs)) if pairs else None


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
    return _mean_of_others(run, column, code, tuple(codes))


@once_per_run
def _scores(run: Run, column: Column, codes: tuple[str, ...]) -> dict[str, Estimate]:
    """Return the scores of those languages that have one."""
    return {code: score for code in codes if (score := score_of(run, column, code)) is not None}


@once_per_run
def _mean_of_others(run: Run, column: Column, code: str, codes: tuple[str, ...]) -> Estimate | None:
    scores = [score for language, score in _scores(run, column, codes).items() if language != code]
    if not scores:
        return None
    value = fmean(score.value for score in scores)
    errors = [score.se for score in scores if score.se is not None]
    if len(errors) < len(scores):
        return Estimate(value=value)
    se = math.hypot(*errors) / len(scores)
    interval = (max(0.0, value - NORMAL * se), min(1.0, value + NORMAL * se))
    return Estimate(value=value, se=se, interval=interval, draws=min(score.draws for score in scores))
