"""The cluster bootstrap of scores that are computed from sums of counts over all items.

A resample draws as many clusters as there are, with replacement, and needs only their sums: the
replicates are weights times sums, one matrix product for all statistics and all parts of the items (Davison and
Hinkley 1997, sections 2.4 and 3.8). Clusters with equal sums are interchangeable, so that numbers of draws are drawn
for distinct sums: a multinomial of the same distribution, which makes a million items cheap.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from harness.statistics.interval import AnyFloats, Codes, Floats, Interval

Statistic = Callable[[Floats], float]
"""From sums of counts, shape (k,), to a score."""
DRAWS = 1_000
DIFFERENCE = 1e-5
"""Relative step of numerical derivatives."""
BLOCK = 1_000_000
"""Numbers of draws that are held at a time, of 8 bytes each."""
REPEATED = 4
"""So many clusters must share their sums on average for a multinomial to be drawn faster than single clusters."""


def seed_of(*names: str) -> int:
    """Return a seed of 32 bits that is always the same for the same names."""
    digest = blake2b(json.dumps(names).encode(), digest_size=4, person=b"harness seed").digest()
    return int.from_bytes(digest, "big")


def cluster_sums(counts: AnyFloats, codes: Codes, groups: int | None = None) -> AnyFloats:
    """Return the sums of counts by cluster: shape (G, ..., k) for counts of shape (..., n, k).

    `codes` has shape (n,) and holds numbers below G, which is `groups` or one more than the largest. Nothing is
    copied where every item is its own cluster.
    """
    largest = int(codes.max(initial=-1)) + 1
    if groups is None and largest == len(codes) and counts.ndim == 2:
        return counts
    groups = largest if groups is None else groups
    *lead, _, k = counts.shape
    flat = counts.reshape(-1, len(codes), k)
    sums = np.empty((groups, len(flat), k))
    for row, column in np.ndindex(len(flat), k):
        sums[:, row, column] = np.bincount(codes, weights=flat[row, :, column], minlength=groups)
    return sums.reshape(groups, *lead, k)


def resampled_sums(sums: AnyFloats, *, draws: int = DRAWS, seed: int = 0) -> Floats:
    """Return the sums of every resample of the clusters: shape (draws, m) for sums of shape (G, m).

    They do not depend on the order of the clusters.
    """
    rows, numbers = distinct_rows(sums)
    generator = np.random.default_rng(seed)
    total = len(sums)
    repeated = REPEATED * len(rows) <= total
    if not repeated and len(rows) < total:
        rows = np.repeat(rows, numbers, axis=0)
    block = max(1, BLOCK // len(rows))
    drawn_sums = np.empty((draws, sums.shape[1]))
    for start in range(0, draws, block):
        count = min(block, draws - start)
        if repeated:
            weights = generator.multinomial(total, numbers / total, size=count)
        else:
            drawn = generator.integers(0, total, size=(count, total))
            drawn += np.arange(count)[:, None] * total
            weights = np.bincount(drawn.ravel(), minlength=count * total).reshape(count, total)
        drawn_sums[start : start + count] = weights.astype(np.float64) @ rows
    return drawn_sums


def distinct_rows(rows: AnyFloats) -> tuple[Floats, Codes]:
    """Return the distinct rows in an order of their own, and how many of each there are.

    Rows are sorted by a weighted sum of their columns. Different rows that happen to have the same one may appear
    more than once, which leaves what is computed from them right.
    """
    key = np.zeros(len(rows))
    weights: Floats = np.random.default_rng(0).random(size=(rows.shape[1],))
    for column, weight in enumerate(weights.tolist()):
        key += weight * rows[:, column]
    ordered = rows[np.argsort(key, kind="stable")]
    new = np.ones(len(rows), dtype=np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    return ordered[starts].astype(np.float64, copy=False), np.diff(np.append(starts, len(rows)))


@dataclass(frozen=True, slots=True)
class RowStatistic:
    """A statistic that is computed for many rows of sums at once."""

    values: Callable[[Floats], Floats]
    """From sums of counts, shape (..., k), to scores of shape (...)."""

    def __call__(self, sums: Floats) -> float:
        """Return the score of sums of shape (k,)."""
        return float(self.values(sums))


def ratio(numerator: Floats, denominator: Floats, *, empty: float = 0.0) -> Floats:
    """Return numerator / denominator, and `empty` where the denominator is 0."""
    quotients = np.full(np.shape(numerator), empty)
    return np.asarray(np.divide(numerator, denominator, out=quotients, where=denominator != 0))


def evaluated(statistic: Statistic, sums: Floats) -> Floats:
    """Return the statistic of every row of sums: shape (...,) for sums of shape (..., k).

    A statistic that divides by a sum which is zero in this row is NaN there.
    """
    if isinstance(statistic, RowStatistic):
        return statistic.values(sums)
    flat = sums.reshape(-1, sums.shape[-1])
    values = np.empty(len(flat))
    for index, row in enumerate(flat):
        try:
            values[index] = statistic(row)
        except (ZeroDivisionError, ValueError):
            values[index] = np.nan
    return values.reshape(sums.shape[:-1])


def bootstrap_counts(
    counts: AnyFloats, codes: Codes, statistic: Statistic, *, draws: int = DRAWS, seed: int = 0
) -> Floats:
    """Return the statistic in every resample: shape (draws, ...) for counts of shape (..., n, k).

    Leading axes are parts of the items, such as buckets or languages, with zeros where an item is outside of a part;
    all parts see the same resamples. the value is NaN where a resample leaves a part without what the statistic needs.

    Args:
        counts: Shape (..., n, k): the sufficient statistics of each item.
        codes: Shape (n,): the number of each item's cluster, 0, 1, ... G - 1.
        statistic: From column sums to a score.
        draws: Number of resamples.
        seed: Of the draws.
    """
    sums = cluster_sums(counts, codes)
    shape = sums.shape[1:]
    drawn = resampled_sums(sums.reshape(len(sums), -1), draws=draws, seed=seed)
    return evaluated(statistic, drawn.reshape(draws, *shape))


def count_interval(
    counts: AnyFloats,
    codes: Codes,
    statistic: Statistic,
    *,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Interval:
    """Return the bootstrap standard error and percentile interval of a statistic of sums of counts.

    The arguments are those of `bootstrap_counts`, with counts of shape (n, k). There is no interval for no items, for
    one cluster, where all resamples score the same, or where one of them has no score.
    """
    if not len(codes):
        return Interval()
    groups = int(codes.max()) + 1
    if groups < 2:
        return Interval(method="one cluster")
    replicates = bootstrap_counts(counts, codes, statistic, draws=draws, seed=seed)
    method = "bootstrap" if groups == len(codes) else "cluster bootstrap"
    return percentile_interval(replicates, level=level, method=method, groups=groups, seed=seed)


def influence_values(counts: Floats, statistic: Statistic) -> Floats | None:
    """Return each item's contribution to a statistic of the sums of counts, to first order: shape (n,), of sum 0.

    The empirical influence values over n (Davison and Hinkley 1997, section 2.7.2), from central differences. None
    where the statistic has no value next to the sums.

    Args:
        counts: Shape (n, k).
        statistic: From column sums to a score.
    """
    sums = counts.sum(axis=0)
    steps = np.diag(DIFFERENCE * np.maximum(1.0, np.abs(sums)))
    slopes = (evaluated(statistic, sums + steps) - evaluated(statistic, sums - steps)) / (
        2 * steps.diagonal()
    )
    if not np.isfinite(slopes).all():
        return None
    values: Floats = (counts - counts.mean(axis=0)) @ slopes
    return values


def percentile_interval(
    replicates: Floats,
    *,
    level: float = 0.95,
    method: str = "bootstrap",
    groups: int | None = None,
    seed: int,
) -> Interval:
    """Return the percentile interval of bootstrap replicates (Efron 1979; Davison and Hinkley 1997, section 5.3).

    Args:
        replicates: Shape (draws,).
        level: Coverage of the interval.
        method: What the interval is called.
        groups: Number of the clusters that were drawn.
        seed: Of the draws.
    """
    if not np.isfinite(replicates).all():
        return Interval(method="a resample has no score")
    if np.ptp(replicates) == 0:
        return Interval(method="constant")
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return Interval(
        se=float(replicates.std(ddof=1)),
        low=float(low),
        high=float(high),
        method=method,
        groups=groups,
        draws=len(replicates),
        seed=seed,
    )
