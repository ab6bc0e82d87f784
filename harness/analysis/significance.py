"""Whether systems differ on the same items: paired intervals, permutation tests, tie groups and rank intervals.

All resamples are of draws: a cluster of items and, in a parallel task, an item with its translations. Other languages
are resampled apart. Languages are fixed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np

from harness.metrics.metric import Metric, metric_name
from harness.scores.task_intervals import LanguageItems
from harness.statistics import (
    DRAWS,
    Codes,
    Interval,
    cluster_sums,
    detectable_difference,
    draw_codes,
    evaluated,
    holm,
    mcnemar,
    paired_difference,
    percentile_interval,
    rank_intervals,
    resampled_sums,
    seed_of,
    sign_flip_p,
    swap_p,
    tied_with_best,
)
from harness.statistics.interval import Booleans, Floats
from harness.statistics.significance import least_p

ALPHA = 0.05
SIGNS = 1_999
"""Replicates of `flipped_scores`."""
ROUNDING = 1e-12
"""Sums of differences that are smaller, relative to the largest, are zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Interval):
    """The score of the first system, which is the subject of a comparison, minus another one's, with its interval."""

    value: float
    p: float | None = None
    """Of the permutation test over clusters, two-sided; None for metrics that give neither items nor counts."""
    discordant: int | None = None
    """Number of the draws in which the two systems differ: all that p rests on."""
    p_holm: float | None = None
    """The same, adjusted for the number of systems that are compared with the first."""
    mcnemar: float | None = None
    """Exact p of McNemar's test; only for 0/1 items of one language without clusters."""
    won: int | None = None
    """Items for which the first system has the higher score; None for set-level metrics."""
    lost: int | None = None
    even: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """A metric of every system, as fractions in [0, 1]."""

    metric: str
    values: tuple[float, ...]
    differences: tuple[Difference | None, ...]
    """None for the first system."""
    ranks: tuple[tuple[int, int], ...] | None = None
    """By system: the middle 95 % of its ranks in a joint bootstrap; 1 is the best."""
    best: tuple[bool, ...] | None = None
    """By system: whether it does not differ from the best one after Holm; None for a single language of several."""
    out_of_reach: tuple[bool, ...] | None = None
    """By system: whether so few clusters differ from the best one's that no scores of theirs could be significant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedItems(LanguageItems):
    """The common items of several systems, with the score of each system; metrics without item scores have (0,)."""

    values: tuple[float, ...]
    """By system."""
    parallel: bool
    """Whether its items are one draw with those of the same id in other such languages."""


def assess(
    metric: Metric, by_language: Sequence[ComparedItems], *, task: str
) -> tuple[Scores, tuple[Scores, ...]]:
    """Return the mean over languages of a metric with its tests, and the scores of every language with theirs.

    Args:
        metric: What the items were scored with.
        by_language: The common items, language by language; at least one.
        task: Seeds the resamples, with the metric.
    """
    means = tuple(map(fmean, zip(*(items.values for items in by_language), strict=True)))
    values = [means, *(items.values for items in by_language)]
    if not _can_be_tested(metric, by_language):
        untested = [[Difference(value=scores[0] - value) for value in scores[1:]] for scores in values]
        mean, *languages = (
            Scores(metric=metric.name, values=scores, differences=(None, *differences))
            for scores, differences in zip(values, untested, strict=True)
        )
        return mean, tuple(languages)
    trial = _Trial(metric, by_language, seed_of("compare", task, metric.name))
    mean, *languages = (trial.scores(scores, place) for place, scores in enumerate(values, start=-1))
    best = max(range(len(means)), key=means.__getitem__)
    rivals = [None if index == best else index for index in range(len(means))]
    pairs = [None if index is None else trial.p(best, index)[0] for index in rivals]
    counts = [None if index is None else trial.discordant(best, index, -1) for index in rivals]
    tied, unreachable = tied_with_best(means, pairs), _out_of_reach(counts)
    return replace(mean, best=tuple(tied), out_of_reach=tuple(unreachable)), tuple(languages)


def flipped_scores(metric: Metric, by_language: Sequence[ComparedItems], *, task: str) -> Floats | None:
    """Return scores of all systems without differences, of shape (draws, systems): what is noise between them.

    How each draw departs from its mean over the systems gets a random sign, the same for all systems: a wild bootstrap
    (Liu 1988) that keeps how alike the answers of two systems are. None for metrics that are not sums over items.
    """
    if not _can_be_tested(metric, by_language):
        return None
    seed = seed_of("history", task, metric.name)
    return _Trial(metric, by_language, seed).flipped_scores(np.random.default_rng(seed))


def _can_be_tested(metric: Metric, by_language: Sequence[ComparedItems]) -> bool:
    shapes = [items.scores.ndim for items in by_language]
    return all(ndim == 2 or (ndim == 3 and metric.from_counts is not None) for ndim in shapes)


def power_notes(scores: Scores, systems: Sequence[str]) -> Iterator[str]:
    """Yield the bounds of p where no scores could give a significant one, and the true differences that show.

    Both are against the first system. The smallest true difference that a test finds follows from the measured spread;
    systems with too high a bound have none: whatever their scores, no test of these items could be significant.
    Source: Miller 2024, arXiv 2411.00640, section 5, as `harness.statistics.detectable_difference`.
    """
    counts = [None if difference is None else difference.discordant for difference in scores.differences]
    bounded, detectable = [], []
    rows = zip(systems, scores.differences, _out_of_reach(counts), strict=True)
    for name, difference, unreachable in rows:
        if difference is None:
            continue
        if unreachable:
            bounded.append((least_p(difference.discordant or 0), name))
        elif difference.se and difference.groups:
            least = detectable_difference(difference.se * math.sqrt(difference.groups), difference.groups)
            if least is not None:
                detectable.append(f"{least * 100:.1f} points for {name} ({difference.groups:,} draws)")
    if bounded:
        bounds = " and ".join(f"{bound:.3f} for {name}" for bound, name in bounded)
        tests = len(systems) - 1
        adjusted = f" (after Holm {min(1.0, min(bounded)[0] * tests):.3f})" if tests > 1 else ""
        yield (
            f"{metric_name(scores.metric)}: so few clusters differ from those of {systems[0]} that p cannot be "
            f"smaller than {bounds}{adjusted}, whatever the scores. An interval can exclude 0 all the same."
        )
    if detectable:
        yield (
            f"{metric_name(scores.metric)}: the smallest true difference to {systems[0]} that a test finds here with "
            f"80 % power: {', '.join(detectable)}. Smaller ones are seldom significant."
        )


def _out_of_reach(counts: Sequence[int | None]) -> list[bool]:
    """Return for which tests, of so many clusters that differ, even the smallest p would not be significant.

    Systems that differ nowhere are not meant: they are the same. None where there is no test.
    """
    bounds = [least_p(count) for count in counts if count is not None]
    # Holm rejects nothing unless the smallest of all p is below ALPHA divided by their number.
    least = min(bounds, default=0.0) * len(bounds)
    return [bool(count) and max(least, least_p(count or 0)) >= ALPHA for count in counts]


class _Trial:
    """The items of all languages under one metric, and the resamples that its tests share."""

    def __init__(self, metric: Metric, by_language: Sequence[ComparedItems], seed: int) -> None:
        self._metric, self._seed = metric, seed
        self._rows = [items.scores for items in by_language]
        self._sizes = [len(items.ids) for items in by_language]
        self._linked = len(by_language) > 1 and any(items.parallel for items in by_language)
        item_keys = [(items.language, items.ids, items.clusters) for items in by_language]
        unpaired = [items.language for items in by_language if not items.parallel]
        self._codes = draw_codes(item_keys, linked=self._linked, unpaired=unpaired)
        self._strata = np.repeat(np.arange(len(by_language)), self._sizes)
        self._p: dict[tuple[int, int], list[float]] = {}

    @property
    def _of_means(self) -> bool:
        return self._rows[0].ndim == 2

    def _select(self, place: int) -> tuple[Booleans, Codes]:
        """Return which items a place has, and the numbers of their draws."""
        mask = self._strata == place if place >= 0 else np.ones(len(self._strata), dtype=np.bool_)
        return mask, np.unique(self._codes[mask], return_inverse=True)[1].astype(np.int64)

    def _differences(self, first: int, second: int) -> Floats:
        return np.concatenate([rows[second] - rows[first] for rows in self._rows]).astype(np.float64)

    def p(self, first: int, second: int) -> list[float]:
        """Return the p-value of the mean over languages, then that of every language."""
        pair = (min(first, second), max(first, second))
        if pair not in self._p:
            self._p[pair] = self._flipped(*pair) if self._of_means else self._swapped(*pair)
        return self._p[pair]

    def scores(self, values: tuple[float, ...], place: int) -> Scores:
        """Return scores with the tests against the first system; place -1 is the mean, others are languages."""
        systems = range(1, len(values))
        tests = [self.p(0, index)[place + 1] for index in systems]
        differences = [
            Difference(
                **asdict(replace(self.interval(index, place), groups=int(self._select(place)[1].max()) + 1)),
                value=values[0] - values[index],
                p=p,
                discordant=self.discordant(0, index, place),
                p_holm=p_holm,
                **self.counted(index, place),
            )
            for index, p, p_holm in zip(systems, tests, holm(tests).tolist(), strict=True)
        ]
        return Scores(
            metric=self._metric.name,
            values=values,
            differences=(None, *differences),
            ranks=self.ranks(place),
        )

    def discordant(self, first: int, second: int, place: int) -> int:
        """Return in how many draws of a place two systems differ; place -1 is the mean."""
        if self._of_means:
            mask, codes = self._select(place)
            weighted = self._differences(first, second) / np.array(self._sizes)[self._strata]
            sums = np.abs(np.bincount(codes, weights=weighted[mask]))
            return int((sums > ROUNDING * sums.max(initial=0.0)).sum())
        blocks = self._blocks
        if place >= 0:
            blocks = [blocks[0][:, [place]]] if self._linked else [blocks[place]]
        return sum(
            int((block[:, :, first] != block[:, :, second]).any(axis=(1, 2)).sum()) for block in blocks
        )

    def _flipped(self, first: int, second: int) -> list[float]:
        differences = self._differences(first, second)
        samples = [(differences / np.array(self._sizes)[self._strata], self._codes)]
        for mask, codes in map(self._select, range(len(self._sizes))):
            samples.append((differences[mask], codes))
        return [sign_flip_p(values, codes, seed=self._seed) for values, codes in samples]

    def _swapped(self, first: int, second: int) -> list[float]:
        assert self._metric.from_counts is not None
        blocks = [sums.reshape(*sums.shape[:3], -1) for sums in self._blocks]
        first_sums, second_sums = ([sums[:, :, index] for sums in blocks] for index in (first, second))
        mean, by_language = swap_p(first_sums, second_sums, self._metric.from_counts, seed=self._seed)
        return [mean, *by_language]

    @cached_property
    def _blocks(self) -> list[Floats]:
        """Sums by draw, each of shape (G, languages, systems, k): all together where linked, else by language."""
        # Item scores become counts whose ratio is their mean.
        counts = [
            np.stack([rows, np.ones_like(rows)], axis=-1) if self._of_means else rows for rows in self._rows
        ]
        split = np.split(self._codes, np.cumsum(self._sizes)[:-1])
        if not self._linked:
            split = [np.unique(codes, return_inverse=True)[1] for codes in split]
        groups = int(self._codes.max()) + 1 if self._linked else None
        pairs = zip(counts, split, strict=True)
        sums: list[Floats] = [cluster_sums(rows, codes, groups).astype(np.float64) for rows, codes in pairs]
        return [np.stack(sums, axis=1)] if self._linked else [rows[:, None] for rows in sums]

    @cached_property
    def _replicates(self) -> Floats:
        """Scores in every resample, of shape (draws, languages, systems)."""
        scores = []
        for number, sums in enumerate(self._blocks):
            drawn = resampled_sums(sums.reshape(len(sums), -1), seed=self._seed + number)
            scores.append(self._scored(drawn.reshape(DRAWS, *sums.shape[1:])))
        return np.concatenate(scores, axis=1)

    def flipped_scores(self, random: np.random.Generator) -> Floats:
        """Return the means over languages under random signs, of shape (SIGNS, systems)."""
        scores = []
        for sums in self._blocks:
            middle = sums.mean(axis=2, keepdims=True)
            apart = (sums - middle).reshape(len(sums), -1)
            apart = apart[apart.any(axis=1)]
            signs = random.integers(0, 2, size=(SIGNS, len(apart)), dtype=np.int8) * 2.0 - 1
            drawn = (signs @ apart).reshape(SIGNS, *sums.shape[1:]) + middle.sum(axis=0)
            scores.append(self._scored(drawn))
        return np.asarray(np.concatenate(scores, axis=1).mean(axis=1), dtype=np.float64)

    def _scored(self, sums: Floats) -> Floats:
        """Return the scores of sums of shape (..., k)."""
        if self._metric.from_counts is None or self._of_means:
            with np.errstate(invalid="ignore"):
                return np.asarray(sums[..., 0] / sums[..., 1], dtype=np.float64)
        return evaluated(self._metric.from_counts, sums)

    def _at(self, place: int) -> Floats:
        return self._replicates[:, place] if place >= 0 else self._replicates.mean(axis=1)

    def ranks(self, place: int) -> tuple[tuple[int, int], ...] | None:
        """Return the rank intervals; None where some resample has no score."""
        replicates = self._at(place)
        return tuple(rank_intervals(replicates)) if np.isfinite(replicates).all() else None

    def interval(self, index: int, place: int) -> Interval:
        """Return the interval of a system's difference to the first."""
        mask, codes = self._select(place)
        if self._of_means:
            strata = np.unique(self._strata[mask], return_inverse=True)[1].astype(np.int64)
            return paired_difference(self._differences(index, 0)[mask], strata, codes)
        groups = int(codes.max()) + 1
        if groups < 2:
            return Interval(method="one cluster")
        method = "paired bootstrap" if groups == len(codes) else "paired cluster bootstrap"
        replicates = self._at(place)
        return percentile_interval(
            replicates[:, 0] - replicates[:, index], method=method, groups=groups, seed=self._seed
        )

    def counted(self, index: int, place: int) -> dict[str, Any]:
        """Return for how many items, or clusters with one outcome, the first system is better, worse, and even.

        With the exact p of McNemar's test where it applies; nothing for set-level metrics.
        """
        mask, codes = self._select(place)
        by_cluster = self._metric.outcome_by_cluster
        if by_cluster:
            # Codes of languages never meet.
            passed = np.concatenate([rows[0, :, 0] - rows[index, :, 0] for rows in self._rows])[mask]
            outcomes: Floats = np.bincount(codes, weights=passed).astype(np.float64)
        elif self._of_means:
            outcomes = self._differences(index, 0)[mask]
        else:
            return {}
        won, lost = int((outcomes > 0).sum()), int((outcomes < 0).sum())
        counts = {"won": won, "lost": lost, "even": len(outcomes) - won - lost}
        if place < 0 and len(self._sizes) > 1:
            return counts
        binary = by_cluster or all(np.isin(rows[[0, index]], (0.0, 1.0)).all() for rows in self._rows)
        is_alone = by_cluster or int(codes.max()) + 1 == len(codes)
        return counts | {"mcnemar": mcnemar(lost, won) if binary and is_alone else None}
