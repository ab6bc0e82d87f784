"""Whether the score of a bucket differs from that of all other items of its attribute."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from harness.statistics import constant_bounds, percentile_interval

if TYPE_CHECKING:
    from harness.analysis.bucket_scoring import Block, Split

__all__ = ["BucketContrast", "mean_contrasts", "set_contrasts"]

Floats = npt.NDArray[np.float64]
NORMAL = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketContrast:
    """A bucket against the rest; what cannot be computed (nothing in the rest, one cluster) is None."""

    rest: float | None = None
    """The score of the other buckets of the attribute together."""
    n: int = 0
    """Items, or gold spans, of the rest."""
    low: float | None = None
    """Of the 95 % interval of the difference, bucket minus rest."""
    high: float | None = None
    p: float | None = None
    """Two-sided."""


def mean_contrasts(block: Block, split: Split, values: Floats) -> list[BucketContrast]:
    """Return the contrasts of a mean of items.

    The difference of two means over items that may share clusters: with the influence u_i = (x_i - m) / n of an item
    on the mean of its side, negative for the rest, SE^2 = G / (G - 1) * sum_c (sum_{i in c} u_i)^2 (Liang and Zeger's
    estimator), and t with G - 1 degrees of freedom. A side that is all right or all wrong adds the reach of its
    Wilson interval, since its items show no variance.
    """
    from scipy.special import stdtr, stdtrit

    own = split.systems[0]
    kept = own.codes >= 0
    scores, codes, items = own.statistics[kept, 0], own.codes[kept], own.items[kept]
    _, clusters = np.unique(block.clusters[items], return_inverse=True)
    groups = int(clusters.max(initial=-1)) + 1
    found = []
    for code in range(split.buckets):
        inside = codes == code
        if not inside.any() or inside.all():
            found.append(BucketContrast())
            continue
        mean, rest = float(values[code]), float(scores[~inside].mean())
        influence = np.where(
            inside, (scores - mean) / inside.sum(), -(scores - rest) / np.count_nonzero(~inside)
        )
        sums = np.bincount(clusters, weights=influence, minlength=groups)
        sides = [(mean, clusters[inside]), (rest, clusters[~inside])]
        if groups < 3 or any(len(np.unique(numbers)) < 2 for _, numbers in sides):
            found.append(BucketContrast(rest=rest, n=int(np.count_nonzero(~inside))))
            continue
        variance = groups / (groups - 1) * float(np.square(sums).sum())
        se = math.sqrt(variance + sum(_constant_variance(score, numbers) for score, numbers in sides))
        reach = float(stdtrit(groups - 1, 0.975)) * se
        found.append(
            BucketContrast(
                rest=rest,
                n=int(np.count_nonzero(~inside)),
                low=mean - rest - reach,
                high=mean - rest + reach,
                p=2 * float(stdtr(groups - 1, -abs(mean - rest) / se)) if se else None,
            )
        )
    return found


def _constant_variance(score: float, clusters: npt.NDArray[np.int64]) -> float:
    """Return the variance that the Wilson interval of a side without any variance implies; 0 for other sides."""
    if score not in {0.0, 1.0}:
        return 0.0
    _, codes = np.unique(clusters, return_inverse=True)
    low, high = constant_bounds(score, codes.astype(np.int64))
    return ((high - low) / NORMAL) ** 2


def set_contrasts(
    block: Block, split: Split, totals: Floats, replicates: Floats, rests: Floats
) -> list[BucketContrast]:
    """Return the contrasts of a score that is computed from sums, such as F1.

    The interval is that of a cluster bootstrap of both sides together, p that of the normal distribution with its
    standard error. A side that is all right or all wrong adds the reach of its Wilson interval; the interval is then
    the normal one.

    Args:
        block: The items.
        split: The attribute.
        totals: The sums of the statistics by bucket, shape (buckets, k).
        replicates: The score of every bucket by resample, shape (draws, buckets).
        rests: That of its rest.
    """
    own = split.systems[0]
    values, others = split.metric.values(totals), split.metric.values(totals.sum(axis=0) - totals)
    found = []
    for code in range(split.buckets):
        inside, outside = own.codes == code, (own.codes >= 0) & (own.codes != code)
        if not inside.any() or not outside.any():
            found.append(BucketContrast())
            continue
        mean, rest, n = float(values[code]), float(others[code]), int(split.counts.sum() - split.counts[code])
        clusters = [block.clusters[np.unique(own.items[side])] for side in (inside, outside)]
        drawn = replicates[:, code] - rests[:, code]
        if any(len(np.unique(numbers)) < 2 for numbers in clusters) or not np.isfinite(drawn).all():
            found.append(BucketContrast(rest=rest, n=n))
            continue
        extra = sum(_constant_variance(*side) for side in zip((mean, rest), clusters, strict=True))
        se = math.sqrt(float(drawn.var(ddof=1)) + extra)
        interval = percentile_interval(drawn, seed=block.seed)
        difference = mean - rest
        is_normal = extra > 0 or interval.low is None
        found.append(
            BucketContrast(
                rest=rest,
                n=n,
                low=difference - NORMAL * se if is_normal else interval.low,
                high=difference + NORMAL * se if is_normal else interval.high,
                p=math.erfc(abs(difference) / se / math.sqrt(2)) if se else None,
            )
        )
    return found
