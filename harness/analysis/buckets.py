"""Scores of buckets with their uncertainty: of one system, and of two systems on the same items.

The metric of a bucket is the task's headline, as sufficient statistics that add up over items or spans.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from harness.data.features import Bucket, Feature, Items
from harness.errors import UnknownNameError, UsageError
from harness.metrics import chunk
from harness.metrics.metric import Metric
from harness.statistics import (
    DRAWS,
    NORMAL,
    Interval,
    evaluated,
    half_sums,
    mean_of_codes,
    percentile_interval,
    resampled_sums,
)
from harness.statistics.bootstrap import ratio
from harness.statistics.interval import Booleans, Floats, Integers, constant_bounds, linked_codes
from harness.table import NamedTable

Row = dict[str, Any]
LEAST_ITEMS: Final = 30
"""A difference in a bucket of fewer items is never called significant."""
FLIPS: Final = 1_999
"""Random swaps: p is at least 1 / 2,000."""
TOLERANCE: Final = 1e-9
"""A difference that is below the observed one by no more than this rounding error counts as equally large."""
_OF_SPANS = {f"{unit}_{score}" for unit in ("chunk", "span") for score in ("f1", "precision", "recall")}
"""The metrics that are counts of spans: (correct, predicted, gold)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """Statistics of one system by bucket: a row per item or, for spans, per span of either side."""

    items: Integers
    """The number of the item."""
    codes: Integers
    """The number of the bucket; -1 for none."""
    statistics: Floats
    """Shape (n, k)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One attribute of a block of items, in buckets."""

    feature: Feature
    buckets: tuple[Bucket, ...]
    metric: BucketMetric
    counts: Integers
    """Items, or gold spans, of every bucket."""
    systems: tuple[Observations, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Items that are scored together: those of a language, or of all languages of a task."""

    language: str | None
    """None for all languages."""
    ids: Sequence[str]
    clusters: Integers
    """The number of every item's cluster: 0, 1, ... G - 1."""
    seed: int


def score_splits(block: Block, splits: Sequence[Split], *, examples: int) -> list[list[Row]]:
    """Return a row for every bucket of every split: the scores of their first system, and its rest.

    Means of items have the standard error and interval of `harness.statistics.mean_of_codes`, in which clusters count
    as one draw; set-level scores have those of a cluster bootstrap, one set of resamples for all splits. The rest are
    the other buckets of the attribute together. What cannot be computed (no items, one cluster) is None.
    """
    sets = [split for split in splits if not split.metric.is_mean]
    drawn = iter(_resampled(block, sets, systems=1)[0])
    return [
        _scored(block, split, None if split.metric.is_mean else next(drawn), examples) for split in splits
    ]


def _scored(block: Block, split: Split, drawn: Floats | None, examples: int) -> list[Row]:
    """Return the rows of a split; `drawn` are resampled sums of shape (draws, buckets, k), None for a mean."""
    totals = _totals(split, 0)
    values, rests = split.metric.values(totals), split.metric.values(totals.sum(axis=0) - totals)
    replicates, differences = None, None
    if drawn is not None:
        replicates = split.metric.values(drawn)
        differences = replicates - split.metric.values(drawn.sum(axis=1, keepdims=True) - drawn)
    worst = _largest(block, np.maximum(_item_losses(split, 0, len(block.ids)), 0), examples)
    rows = []
    for code in range(len(split.buckets)):
        value = _value(split, values, code)
        interval = _interval(
            block, split, code, None if replicates is None else replicates[:, code]
        ).to_json()
        rows.append(
            {
                "n": int(split.counts[code]),
                "metric": split.metric.name,
                "value": value,
                **{name: interval[name] for name in ("se", "ci", "ci_method")},
                **_contrast(block, split, code, value, float(rests[code]), differences),
                "q": None,
                "significant": False,
                "examples": worst[code],
            }
        )
    return rows


def compare_splits(block: Block, splits: Sequence[Split], *, examples: int) -> list[list[Row]]:
    """Return a row for every bucket of every split: the scores of both systems, and the first minus the second.

    The interval of the difference is that of a cluster bootstrap of both systems together; p is two-sided under random
    swaps of the systems' answers to whole clusters, which for means of items is the sign-flip test. All splits see the
    same resamples and swaps. ``wins`` are the items in which the first system is better.
    """
    first, second = _resampled(block, splits, systems=2)
    swapped, exhaustive = _swapped(block, splits)
    rows = []
    for split, first_sums, second_sums, null in zip(splits, first, second, swapped, strict=True):
        replicates = split.metric.values(first_sums) - split.metric.values(second_sums)
        rows.append(_compared(block, split, replicates, null, exhaustive, examples))
    return rows


def _compared(
    block: Block, split: Split, replicates: Floats, null: Floats, exhaustive: bool, examples: int
) -> list[Row]:
    """Return the rows of a split from its differences in resamples and under swaps, each (draws, buckets)."""
    values = [split.metric.values(_totals(split, system)) for system in (0, 1)]
    # (1 + b) / (1 + B) for B random swaps (Phipson and Smyth 2010), b / B where all swaps were taken.
    as_large = np.abs(null) >= np.abs(values[0] - values[1]) - TOLERANCE
    extreme, taken = (as_large | np.isnan(null)).sum(axis=0), len(null)
    tails = extreme / taken if exhaustive else (1 + extreme) / (1 + taken)
    size = len(block.ids)
    gain = _item_losses(split, 1, size) - _item_losses(split, 0, size)
    counts, changed = _better(split, gain), _largest(block, gain, examples)
    rows = []
    for code in range(len(split.buckets)):
        both = [_value(split, scores, code) for scores in values]
        difference = None if both[0] is None or both[1] is None else both[0] - both[1]
        several = difference is not None and _clusters(block, split, code) > 1
        interval = percentile_interval(replicates[:, code], seed=block.seed) if several else Interval()
        rows.append(
            {
                "n": int(split.counts[code]),
                "metric": split.metric.name,
                "values": both,
                "difference": difference,
                "ci": interval.to_json()["ci"],
                "p": float(tails[code]) if several else None,
                "q": None,
                "significant": False,
                **dict(zip(("wins", "losses", "ties"), counts[code].tolist(), strict=True)),
                "examples": changed[code],
            }
        )
    return rows


def _value(split: Split, scores: Floats, code: int) -> float | None:
    """Return the score of a bucket; None where no system has something in it.

    A predicted span where no gold one is counts too.
    """
    is_seen = any(bool((observations.codes == code).any()) for observations in split.systems)
    return float(scores[code]) if is_seen and np.isfinite(scores[code]) else None


def _totals(split: Split, system: int) -> Floats:
    """Return the sums of the statistics in every bucket, shape (buckets, k)."""
    return _summed(split.systems[system], split.systems[system].codes, len(split.buckets))


def _summed(observations: Observations, indices: Integers, size: int) -> Floats:
    """Return the sums of the statistics by index, shape (size, k); observations in no bucket are ignored."""
    inside = observations.codes >= 0
    columns = [
        np.bincount(indices[inside], weights=column[inside], minlength=size)
        for column in observations.statistics.T
    ]
    return np.stack(columns, axis=1)


def _resampled(block: Block, splits: Sequence[Split], *, systems: int) -> list[list[Floats]]:
    """Return the sums by system and split, each of shape (draws, buckets, k), of the same resamples."""
    if not splits:
        return [[] for _ in range(systems)]
    sums = np.concatenate([_flat_sums(block, splits, system) for system in range(systems)], axis=1)
    drawn = resampled_sums(sums, draws=DRAWS, seed=block.seed)
    return [_by_split(splits, side) for side in np.split(drawn, systems, axis=1)]


def _flat_sums(block: Block, splits: Sequence[Split], system: int) -> Floats:
    """Return the sums by cluster of all splits next to each other, shape (G, sum of buckets times k)."""
    groups = int(block.clusters.max(initial=-1)) + 1
    columns = []
    for split in splits:
        observations, size = split.systems[system], len(split.buckets)
        indices = block.clusters[observations.items] * size + observations.codes
        columns.append(_summed(observations, indices, groups * size).reshape(groups, -1))
    return np.concatenate(columns, axis=1)


def _by_split(splits: Sequence[Split], flat: Floats) -> list[Floats]:
    """Return the sums of every split, of shape (draws, buckets, k)."""
    widths = [len(split.buckets) * split.systems[0].statistics.shape[1] for split in splits]
    sides = zip(splits, np.split(flat, np.cumsum(widths)[:-1], axis=1), strict=True)
    return [side.reshape(len(side), len(split.buckets), -1) for split, side in sides]


def _swapped(block: Block, splits: Sequence[Split]) -> tuple[list[Floats], bool]:
    """Return the differences under swaps of clusters, each of shape (draws, buckets), and whether all were taken."""
    if not splits:
        return [], False
    first, second = (_flat_sums(block, splits, system) for system in (0, 1))
    moved = second - first
    varying = np.flatnonzero(moved.any(axis=0))
    some, exhaustive = half_sums(moved[:, varying], draws=FLIPS, seed=block.seed)
    halves = np.zeros((len(some), moved.shape[1]))
    halves[:, varying] = some
    sides = (_by_split(splits, sums) for sums in (first.sum(axis=0) + halves, second.sum(axis=0) - halves))
    return [
        split.metric.values(first_sums) - split.metric.values(second_sums)
        for split, first_sums, second_sums in zip(splits, *sides, strict=True)
    ], exhaustive


def _clusters(block: Block, split: Split, code: int) -> int:
    touched = [
        block.clusters[observations.items[observations.codes == code]] for observations in split.systems
    ]
    return len(np.unique(np.concatenate(touched)))


def _interval(block: Block, split: Split, code: int, replicates: Floats | None) -> Interval:
    """Return the interval of a bucket: of a mean that of its items, else that of the bootstrap.

    It is Wilson's where every resample is all wrong or all right: that is no certainty.
    """
    observations = split.systems[0]
    inside = observations.codes == code
    if replicates is None:
        clusters = linked_codes(block.clusters[observations.items[inside]])
        return mean_of_codes(observations.statistics[inside, 0], clusters)
    if _clusters(block, split, code) < 2:
        return Interval(method="one cluster")
    alone = int(block.clusters.max(initial=-1)) + 1 == len(block.ids)
    method = "bootstrap" if alone else "cluster bootstrap"
    interval = percentile_interval(replicates, method=method, seed=block.seed)
    value = float(replicates[0])
    if interval.method != "constant" or value not in {0.0, 1.0}:
        return interval
    touched = np.unique(observations.items[inside])
    return mean_of_codes(np.full(len(touched), value), linked_codes(block.clusters[touched]))


def _contrast(
    block: Block, split: Split, code: int, value: float | None, rest_value: float, differences: Floats | None
) -> Row:
    """Return a bucket against its rest: the score of the rest, and the difference with its interval and two-sided p.

    A side that is all right or all wrong adds the reach of its Wilson interval, since its items show no variance.
    """
    row: Row = {"rest": None, "difference": None, "difference_ci": None, "p": None}
    observations = split.systems[0]
    sides = [observations.codes == code, (observations.codes >= 0) & (observations.codes != code)]
    if value is None or not all(side.any() for side in sides):
        return row
    if differences is None:
        rest_value = float(observations.statistics[sides[1], 0].mean())
    row |= {"rest": rest_value, "difference": value - rest_value}
    clusters = [linked_codes(block.clusters[np.unique(observations.items[side])]) for side in sides]
    if all(numbers.max() > 0 for numbers in clusters):
        scores = (value, rest_value)
        bounds = [
            constant_bounds(*side) for side in zip(scores, clusters, strict=True) if side[0] in {0.0, 1.0}
        ]
        extra = sum(((high - low) / NORMAL) ** 2 for low, high in bounds)
        if differences is None:
            ends, p = _mean_test(block, observations, sides[0], scores, extra)
        else:
            ends, p = _set_test(differences[:, code], value - rest_value, extra, block.seed)
        n = int(split.counts[code])
        # What too few items say is not tested, so that it costs the others nothing.
        is_tested = min(n, int(split.counts.sum()) - n) >= LEAST_ITEMS
        row |= {"difference_ci": ends, "p": p if is_tested else None}
    return row


def _mean_test(
    block: Block, observations: Observations, inside: Booleans, means: tuple[float, float], extra: float
) -> tuple[list[float] | None, float | None]:
    """Return the interval and p of the difference of two means over items that may share clusters.

    With the influence u_i = (x_i - m) / n of an item on the mean of its side, negative for the rest,
    SE^2 = G / (G - 1) * sum_c (sum_{i in c} u_i)^2 (Liang and Zeger's estimator), and t with G - 1 degrees of freedom.
    """
    from scipy.special import stdtr, stdtrit

    in_bucket = observations.codes >= 0
    scores, inside = observations.statistics[in_bucket, 0], inside[in_bucket]
    clusters = linked_codes(block.clusters[observations.items[in_bucket]])
    groups = int(clusters.max()) + 1
    if groups < 3:
        return None, None
    influence = np.where(
        inside, (scores - means[0]) / inside.sum(), -(scores - means[1]) / np.count_nonzero(~inside)
    )
    sums = np.bincount(clusters, weights=influence, minlength=groups)
    se = math.sqrt(groups / (groups - 1) * float(np.square(sums).sum()) + extra)
    difference, reach = means[0] - means[1], float(stdtrit(groups - 1, 0.975)) * se
    p = 2 * float(stdtr(groups - 1, -abs(difference) / se)) if se else None
    return [difference - reach, difference + reach], p


def _set_test(
    replicates: Floats, difference: float, extra: float, seed: int
) -> tuple[list[float] | None, float | None]:
    """Return the interval and p of a difference of scores that are computed from sums, such as F1.

    The interval is that of a cluster bootstrap of both sides together, p that of the normal distribution with its
    standard error; with any `extra` variance the interval is the normal one too.
    """
    if not np.isfinite(replicates).all():
        return None, None
    se = math.sqrt(float(replicates.var(ddof=1)) + extra)
    bounds = percentile_interval(replicates, seed=seed).to_json()["ci"]
    if extra > 0 or bounds is None:
        bounds = [difference - NORMAL * se, difference + NORMAL * se]
    return bounds, math.erfc(abs(difference) / se / math.sqrt(2)) if se else None


def _item_losses(split: Split, system: int, size: int) -> Floats:
    """Return how much is wrong by bucket and item, shape (buckets, n)."""
    observations = split.systems[system]
    inside = observations.codes >= 0
    indices = observations.codes[inside] * size + observations.items[inside]
    losses = split.metric.losses(observations.statistics)[inside]
    total = np.bincount(indices, weights=losses, minlength=len(split.buckets) * size)
    return total.astype(np.float64).reshape(-1, size)


def _better(split: Split, gain: Floats) -> Integers:
    """Return the items that the first system has better, worse and the same, shape (buckets, 3)."""
    touched = np.zeros(gain.shape, dtype=np.bool_)
    for observations in split.systems:
        inside = observations.codes >= 0
        touched[observations.codes[inside], observations.items[inside]] = True
    wins, losses = (gain > TOLERANCE).sum(axis=1), (gain < -TOLERANCE).sum(axis=1)
    return np.stack([wins, losses, touched.sum(axis=1) - wins - losses], axis=1)


def _largest(block: Block, losses: Floats, most: int) -> list[list[str]]:
    """Return the ids of the items with the largest amounts in every bucket; where equal, first what is below 0."""
    orders = [(row, np.lexsort((row > 0, -np.abs(row)))[:most].tolist()) for row in losses]
    return [[block.ids[index] for index in order if row[index] != 0] for row, order in orders]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketMetric:
    """A metric as column sums: `values` of the sums of `statistics` over any items is its value for them."""

    name: str
    parts: tuple[str, ...]
    """The metrics whose mean it is; one in most cases."""
    values: Callable[[Floats], Floats]
    """Sums of shape (..., k) -> values of shape (...); NaN where nothing was summed."""
    is_mean: bool
    """Whether it is a mean of items: its statistics are (score, 1)."""
    of_spans: bool = False
    """Whether its statistics are the (correct, predicted, gold) spans."""

    def statistics(self, items: Items) -> Floats:
        """Return the sufficient statistics of every item, shape (n, k)."""
        if not self.is_mean:
            return np.array([scores[self.parts[0]] for scores in items.scores], dtype=np.float64)
        columns = [[scores[name] for scores in items.scores] for name in self.parts]
        means = np.array(columns, dtype=np.float64).reshape(len(self.parts), -1).mean(axis=0)
        return np.stack([means, np.ones(len(means))], axis=1)

    def losses(self, statistics: Floats) -> Floats:
        """Return how much is wrong with each row, to find the worst ones: shape (n,)."""
        if self.is_mean:
            return np.asarray(statistics[:, 1] - statistics[:, 0])
        if self.of_spans:
            return np.asarray(statistics[:, 1] + statistics[:, 2] - 2 * statistics[:, 0])
        return np.asarray(1 - np.nan_to_num(self.values(statistics)))


def bucket_metric(
    metrics: NamedTable[Metric], items: Items, headline: Sequence[str], asked: str | None
) -> BucketMetric:
    """Return the metric of the buckets of a cell.

    It is the unweighted mean of the headline metrics: the mean of F1 and exact match for questions, as in
    XTREME-R (Ruder et al., 2021, appendix K); the one headline metric of other tasks.

    Args:
        metrics: The registry's.
        items: The items of the cell.
        headline: Names of the task's headline metrics.
        asked: The metric to score with instead.

    Raises:
        UsageError: For a metric that the records do not hold.
    """
    held = list(items.scores[0]) if items.scores else []
    if asked is not None and asked not in held:
        raise UnknownNameError(f"metric in the records of {items.task!r}", asked, held)
    names = [asked] if asked is not None else [name for name in headline if name in held]
    if not names:
        raise UsageError(
            f"The records of {items.task!r} in {items.language.code!r} hold no score of each item by "
            f"{' or '.join(map(repr, headline))}.",
            hint=f"Give one that they hold with --metric: {', '.join(held) or 'none'}.",
        )
    first: Any = items.scores[0][names[0]]
    if isinstance(first, int | float):
        components = tuple(name for name in names if isinstance(items.scores[0][name], int | float))
        name = components[0] if len(components) == 1 else f"mean({', '.join(components)})"
        return BucketMetric(
            name=name,
            parts=components,
            values=lambda totals: ratio(totals[..., 0], totals[..., 1], empty=np.nan),
            is_mean=True,
        )
    from_counts = metrics.get(names[0]).from_counts
    if from_counts is None:
        raise UsageError(f"The metric {names[0]!r} gives no statistics that add up over items.")
    return BucketMetric(
        name=names[0],
        parts=(names[0],),
        values=partial(evaluated, from_counts),
        is_mean=False,
        of_spans=names[0] in _OF_SPANS,
    )


def token_metric() -> BucketMetric:
    """Return the F1 of bare tags (parts of speech): every token is a span of one, right where its tag is.

    Precision counts the tokens that were given the tag, recall those that have it; over all tokens it is accuracy.
    """
    return BucketMetric(
        name="token_f1", parts=("token_f1",), values=chunk.f1_from_counts.values, is_mean=False, of_spans=True
    )
