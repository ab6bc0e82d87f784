"""Scores of buckets with their uncertainty: of one system, and of two systems on the same items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from harness.analysis.bucket_contrast import BucketContrast, mean_contrasts, set_contrasts
from harness.statistics import (
    DRAWS,
    Interval,
    constant_bounds,
    half_sums,
    mean_of_codes,
    percentile_interval,
    resampled_sums,
)

if TYPE_CHECKING:
    from harness.analysis.bucket_metric import BucketMetric

__all__ = ["Block", "BucketScore", "Observations", "PairScore", "Split", "compare_splits", "score_splits"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
FLIPS: Final = 1_999
"""Random swaps: p is at least 1 / 2,000."""
TOLERANCE: Final = 1e-9
"""What differs from the observed difference by no more than rounding counts as large as it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """What one system did in the buckets of one attribute: an entry per item or, for spans, per span of either side."""

    items: Integers
    """The number of the item."""
    codes: Integers
    """The number of the bucket; -1 for none."""
    statistics: Floats
    """Shape (n, k)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One attribute of a block of items."""

    metric: BucketMetric
    buckets: int
    counts: Integers
    """Items, or gold spans, of every bucket."""
    systems: tuple[Observations, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Items that are scored together: those of a language, or of all languages of a task."""

    ids: Sequence[str]
    clusters: Integers
    """The number of every item's cluster: 0, 1, ... G - 1."""
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketScore:
    """The score of one bucket; what cannot be computed (no items, one cluster) is None."""

    n: int
    value: float | None
    se: float | None
    low: float | None
    high: float | None
    method: str | None
    examples: tuple[str, ...]
    """The worst items, worst first."""
    contrast: BucketContrast
    """Against the other buckets of the attribute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairScore:
    """The scores of two systems in one bucket; the difference is the second minus the first."""

    n: int
    values: tuple[float | None, float | None]
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    wins: int
    """Items of the bucket in which the second system is better."""
    losses: int
    ties: int
    examples: tuple[str, ...]
    """The items that differ most, first those in which the second system is worse."""


def score_splits(block: Block, splits: Sequence[Split], *, examples: int) -> list[list[BucketScore]]:
    """Return the scores of every bucket of every split, for their first system.

    Means of items have the standard error and interval of `harness.statistics.mean_of_codes`, in which clusters count
    as one draw; set-level scores have those of a cluster bootstrap, one set of resamples for all splits.
    """
    replicates = iter(_own_replicates(block, [split for split in splits if not split.metric.is_mean]))
    found = []
    for split in splits:
        totals = _totals(split, 0)
        values = split.metric.values(totals)
        if split.metric.is_mean:
            intervals, contrasts = _mean_intervals(block, split), mean_contrasts(block, split, values)
        else:
            drawn, rests = next(replicates)
            intervals = _set_intervals(block, split, drawn)
            contrasts = set_contrasts(block, split, totals, drawn, rests)
        worst = _worst(block, split, split.metric.losses(split.systems[0].statistics), examples)
        found.append(
            [
                BucketScore(
                    n=int(split.counts[code]),
                    value=_or_none(values[code]) if _is_seen(split, code) else None,
                    se=intervals[code].se,
                    low=intervals[code].low,
                    high=intervals[code].high,
                    method=intervals[code].method,
                    examples=worst[code],
                    contrast=contrasts[code],
                )
                for code in range(split.buckets)
            ]
        )
    return found


def compare_splits(block: Block, splits: Sequence[Split], *, examples: int) -> list[list[PairScore]]:
    """Return the scores of both systems in every bucket of every split.

    The interval of the difference is that of a cluster bootstrap of both systems together; p is two-sided under random
    swaps of the systems' answers to whole clusters, which for means of items is the sign-flip test. All splits see the
    same resamples and swaps.
    """
    first, second = _replicates(block, splits, systems=2)
    swapped, whole = _swapped(block, splits)
    found = []
    for split, one, other, null in zip(splits, first, second, swapped, strict=True):
        values = [split.metric.values(_totals(split, system)) for system in (0, 1)]
        counts = _better(split, len(block.ids))
        changed = _changed(block, split, examples)
        tails = _tails(values[1] - values[0], null, whole=whole)
        found.append(
            [
                _pair(block, split, code, values, other[:, code] - one[:, code], tails, counts, changed)
                for code in range(split.buckets)
            ]
        )
    return found


def _pair(
    block: Block,
    split: Split,
    code: int,
    values: Sequence[Floats],
    replicates: Floats,
    tails: Floats,
    counts: Integers,
    changed: Sequence[tuple[str, ...]],
) -> PairScore:
    seen = _is_seen(split, code)
    both = (_or_none(values[0][code]), _or_none(values[1][code])) if seen else (None, None)
    difference = None if both[0] is None or both[1] is None else both[1] - both[0]
    several = difference is not None and _clusters(block, split, code) > 1
    interval = percentile_interval(replicates, seed=block.seed) if several else None
    return PairScore(
        n=int(split.counts[code]),
        values=both,
        difference=difference,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        p=float(tails[code]) if several else None,
        wins=int(counts[code, 0]),
        losses=int(counts[code, 1]),
        ties=int(counts[code, 2]),
        examples=changed[code],
    )


def _tails(observed: Floats, null: Floats, *, whole: bool) -> Floats:
    """Return the two-sided p of every bucket's difference, shape (buckets,), from those under swaps, (draws, buckets).

    (1 + b) / (1 + B) for B random swaps (Phipson and Smyth 2010), b / B where all swaps were taken.
    """
    as_large = np.abs(null) >= np.abs(observed) - TOLERANCE
    extreme = (as_large | np.isnan(null)).sum(axis=0)
    return np.asarray(extreme / len(null) if whole else (1 + extreme) / (1 + len(null)))


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _is_seen(split: Split, code: int) -> bool:
    """Return whether some system has something in a bucket: a predicted span where no gold one is counts too."""
    return any(bool((own.codes == code).any()) for own in split.systems)


def _totals(split: Split, system: int) -> Floats:
    """Return the sums of the statistics in every bucket, shape (buckets, k)."""
    return _summed(split.systems[system], split.systems[system].codes, split.buckets)


def _summed(own: Observations, places: Integers, size: int) -> Floats:
    """Return the sums of the statistics by place, shape (size, k); observations in no bucket are ignored."""
    inside = own.codes >= 0
    columns = [
        np.bincount(places[inside], weights=column[inside], minlength=size) for column in own.statistics.T
    ]
    return np.stack(columns, axis=1)


def _cluster_sums(block: Block, split: Split, system: int) -> Floats:
    """Return the sums of the statistics by cluster and bucket, shape (G, buckets, k)."""
    own = split.systems[system]
    groups = int(block.clusters.max(initial=-1)) + 1
    places = block.clusters[own.items] * split.buckets + own.codes
    return _summed(own, places, groups * split.buckets).reshape(groups, split.buckets, -1)


def _replicates(block: Block, splits: Sequence[Split], *, systems: int) -> list[list[Floats]]:
    """Return the bootstrap replicates by system and split, each of shape (draws, buckets), of the same resamples."""
    if not splits:
        return [[] for _ in range(systems)]
    sums = [_flat_sums(block, splits, system) for system in range(systems)]
    drawn = resampled_sums(np.concatenate(sums, axis=1), draws=DRAWS, seed=block.seed)
    return [_evaluated(splits, part) for part in np.split(drawn, systems, axis=1)]


def _own_replicates(block: Block, splits: Sequence[Split]) -> Iterator[tuple[Floats, Floats]]:
    """Yield by split the bootstrap replicates of its buckets and of the rest of each, of shape (draws, buckets)."""
    if not splits:
        return
    drawn = resampled_sums(_flat_sums(block, splits, 0), draws=DRAWS, seed=block.seed)
    for split, sums in zip(splits, _by_split(splits, drawn), strict=True):
        yield split.metric.values(sums), split.metric.values(sums.sum(axis=1, keepdims=True) - sums)


def _flat_sums(block: Block, splits: Sequence[Split], system: int) -> Floats:
    """Return the sums by cluster of all splits next to each other, shape (G, sum of buckets times k)."""
    parts = [_cluster_sums(block, split, system) for split in splits]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def _evaluated(splits: Sequence[Split], flat: Floats) -> list[Floats]:
    return [split.metric.values(sums) for split, sums in zip(splits, _by_split(splits, flat), strict=True)]


def _by_split(splits: Sequence[Split], flat: Floats) -> list[Floats]:
    """Return the sums of every split, of shape (draws, buckets, k)."""
    widths = [split.buckets * split.systems[0].statistics.shape[1] for split in splits]
    parts = np.split(flat, np.cumsum(widths)[:-1], axis=1)
    return [part.reshape(len(part), split.buckets, -1) for split, part in zip(splits, parts, strict=True)]


def _swapped(block: Block, splits: Sequence[Split]) -> tuple[list[Floats], bool]:
    """Return the differences under swaps of clusters, each of shape (draws, buckets), and whether all were taken."""
    if not splits:
        return [], False
    first, second = (_flat_sums(block, splits, system) for system in (0, 1))
    moved = second - first
    varying = np.flatnonzero(moved.any(axis=0))
    some, whole = half_sums(moved[:, varying], draws=FLIPS, seed=block.seed)
    halves = np.zeros((len(some), moved.shape[1]))
    halves[:, varying] = some
    swapped = [
        _evaluated(splits, totals) for totals in (first.sum(axis=0) + halves, second.sum(axis=0) - halves)
    ]
    return [other - one for one, other in zip(*swapped, strict=True)], whole


def _clusters(block: Block, split: Split, code: int) -> int:
    touched = [block.clusters[own.items[own.codes == code]] for own in split.systems]
    return len(np.unique(np.concatenate(touched)))


def _mean_intervals(block: Block, split: Split) -> list[Interval]:
    own = split.systems[0]
    found = []
    for code in range(split.buckets):
        inside = own.codes == code
        _, clusters = np.unique(block.clusters[own.items[inside]], return_inverse=True)
        found.append(mean_of_codes(own.statistics[inside, 0], clusters.astype(np.int64)))
    return found


def _set_intervals(block: Block, split: Split, replicates: Floats) -> list[Interval]:
    alone = int(block.clusters.max(initial=-1)) + 1 == len(block.ids)
    found = []
    for code in range(split.buckets):
        if _clusters(block, split, code) < 2:
            found.append(Interval(se=None, low=None, high=None, method="one cluster"))
        else:
            method = "bootstrap" if alone else "cluster bootstrap"
            own = percentile_interval(replicates[:, code], method=method, seed=block.seed)
            found.append(_bounded(block, split, code, float(replicates[0, code]), own))
    return found


def _bounded(block: Block, split: Split, code: int, value: float, found: Interval) -> Interval:
    """Return Wilson's bounds where every resample is all wrong or all right: that is no certainty."""
    if found.method != "constant" or value not in {0.0, 1.0}:
        return found
    own = split.systems[0]
    touched = np.unique(own.items[own.codes == code])
    _, clusters = np.unique(block.clusters[touched], return_inverse=True)
    low, high = constant_bounds(value, clusters.astype(np.int64))
    method = "wilson" if clusters.max() + 1 == len(touched) else "clustered wilson"
    return Interval(se=0.0, low=low, high=high, method=method)


def _item_losses(split: Split, system: int, losses: Floats, size: int) -> Floats:
    """Return the losses by bucket and item, shape (buckets, n)."""
    own = split.systems[system]
    inside = own.codes >= 0
    places = own.codes[inside] * size + own.items[inside]
    total: Floats = np.bincount(places, weights=losses[inside], minlength=split.buckets * size).astype(
        np.float64
    )
    return total.reshape(split.buckets, size)


def _worst(block: Block, split: Split, losses: Floats, most: int) -> list[tuple[str, ...]]:
    """Return the ids of the items with the largest losses in every bucket, in the order of items where equal."""
    by_item = _item_losses(split, 0, losses, len(block.ids))
    found = []
    for row in by_item:
        order = np.argsort(-row, kind="stable")[:most]
        found.append(tuple(block.ids[index] for index in order.tolist() if row[index] > 0))
    return found


def _loss_differences(split: Split, size: int) -> Floats:
    first, second = (
        _item_losses(split, system, split.metric.losses(split.systems[system].statistics), size)
        for system in (0, 1)
    )
    return first - second


def _better(split: Split, size: int) -> Integers:
    """Return the items that the second system has better, worse and the same, shape (buckets, 3)."""
    gain = _loss_differences(split, size)
    touched = np.zeros((split.buckets, size), dtype=np.bool_)
    for own in split.systems:
        inside = own.codes >= 0
        touched[own.codes[inside], own.items[inside]] = True
    wins, losses = (gain > TOLERANCE).sum(axis=1), (gain < -TOLERANCE).sum(axis=1)
    return np.stack([wins, losses, touched.sum(axis=1) - wins - losses], axis=1)


def _changed(block: Block, split: Split, most: int) -> list[tuple[str, ...]]:
    """Return the ids of the items that differ most in every bucket; those that became worse first where equal."""
    found = []
    for row in _loss_differences(split, len(block.ids)):
        order = np.lexsort((row > 0, -np.abs(row)))[:most]
        found.append(tuple(block.ids[index] for index in order.tolist() if row[index] != 0))
    return found
