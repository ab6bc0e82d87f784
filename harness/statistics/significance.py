"""Tests of systems on the same items and their power, corrections for many tests, ranks, and changes of a series.

Under the null hypothesis of a permutation test the two systems can be swapped cluster by cluster. With B random swaps,
of which b give a difference at least as large as the observed one, p = (1 + b) / (1 + B) (Phipson and Smyth 2010); with
few clusters all swaps are taken, and p is exact (Dror et al. 2018, section 3.2; Noreen 1989 calls it approximate
randomization).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.statistics.bootstrap import Statistic, distinct_rows, evaluated
from harness.statistics.interval import AnyFloats, Codes, Floats

FLIPS = 9_999
EXACT = 12
"""Up to so many clusters that differ, all 4,096 swaps are taken."""
BLOCK = 4_000_000
"""Random signs that are held at a time."""
EXPANDED = 50
"""Rows of random signs that are turned into numbers at a time."""
REPEATED = 40
"""So many clusters must have equal rows on average for a binomial to be drawn faster than single signs."""
TOLERANCE = 1e-9
"""Relative to the observed difference: what is as large as it but for rounding counts as large."""
LEAST_PER_POSITION = 10
"""Gold answers per position below which the chi-square distribution is too far from the truth."""
LEVEL = 0.05
ROUNDING = 1e-12


def half_sums(rows: AnyFloats, *, draws: int = FLIPS, seed: int = 0) -> tuple[Floats, bool]:
    """Return sums over random halves of the rows, shape (draws, m), and whether they are all that there are.

    A row of `rows`, of shape (G, m), is in each half with probability 1/2. Up to 12 rows that are not zero give all
    2^G sums instead.
    """
    differing = rows[(rows != 0).any(axis=1)]
    m = rows.shape[1]
    if len(differing) <= EXACT:
        number = len(differing)
        chosen = (np.arange(2**number)[:, None] >> np.arange(number)) & 1
        return chosen.astype(np.float64) @ differing.astype(np.float64), True
    generator = np.random.default_rng(seed)
    distinct, numbers = distinct_rows(differing)
    if REPEATED * len(distinct) <= len(differing):
        return generator.binomial(numbers, 0.5, size=(draws, len(distinct))).astype(
            np.float64
        ) @ distinct, False
    ordered = np.repeat(distinct, numbers, axis=0)
    sums = np.empty((draws, m))
    width = -(-len(ordered) // 8)
    block = max(1, BLOCK // len(ordered))
    for start in range(0, draws, block):
        count = min(block, draws - start)
        bits = np.frombuffer(generator.bytes(count * width), dtype=np.uint8).reshape(count, width)
        # As numbers of 8 bytes, the signs of a whole block would be 32 MB.
        for row in range(0, count, EXPANDED):
            signs = np.unpackbits(bits[row : row + EXPANDED], axis=1, count=len(ordered))
            sums[start + row : start + row + len(signs)] = signs.astype(np.float64) @ ordered
    return sums, False


def least_p(clusters: int) -> float:
    """Return the smallest p that so many clusters can give that differ between two systems, whatever their scores.

    Of 2^k swaps, that of none and that of all give a difference as large as the observed one: 2 / 2^k.
    """
    return float(min(1.0, 2.0 ** (1 - clusters)))


def sign_flip_p(differences: Floats, codes: Codes, *, draws: int = FLIPS, seed: int = 0) -> float:
    """Return the two-sided p of the sum of differences under random signs of whole clusters.

    Args:
        differences: Shape (n,): score of the one system minus that of the other; for a mean over languages each
            divided by the number of items of its language.
        codes: Shape (n,): the number of each item's draw, 0, 1, ... G - 1.
        draws: Random sign vectors; up to 12 clusters that differ are enumerated.
        seed: Of the signs.
    """
    sums = np.bincount(codes, weights=differences) if len(codes) else np.zeros(0)
    scale = np.abs(sums).max(initial=0.0)
    if scale == 0:
        return 1.0
    # Without rounding, weighted differences that are equal would differ in their last digits.
    rounded = np.round(sums / scale, 12)
    # A flip of the sign of -x is one of x: the sum of signs times values does not know whose sign it was.
    magnitudes = np.abs(rounded)
    halves, exhaustive = half_sums(magnitudes[:, None], draws=draws, seed=seed)
    flipped = 2 * halves[:, 0] - magnitudes.sum()
    return _tail(flipped, float(rounded.sum()), exhaustive=exhaustive)


def swap_p(
    first: Sequence[AnyFloats],
    second: Sequence[AnyFloats],
    statistic: Statistic,
    *,
    draws: int = FLIPS,
    seed: int = 0,
) -> tuple[float, list[float]]:
    """Return the two-sided p of the mean difference over strata when clusters are swapped, and that of each stratum.

    Args:
        first: Sums of counts by cluster of the one system: either one array of shape (G, strata, k), whose clusters
            are swapped jointly in all strata, or one of shape (G_s, 1, k) for each stratum.
        second: Those of the other, of the same shapes.
        statistic: From sums to a score.
        draws: Random swaps; up to 12 clusters that differ are enumerated where there is one array.
        seed: Of the swaps.
    """
    columns, observed, exhaustive = [], [], len(first) == 1
    for number, (first_sums, second_sums) in enumerate(zip(first, second, strict=True)):
        moved = np.asarray(second_sums, dtype=np.float64) - first_sums
        halves, all_of_them = half_sums(moved.reshape(len(moved), -1), draws=draws, seed=seed + number)
        if all_of_them and len(first) > 1:
            halves = halves[np.random.default_rng(seed + number).integers(len(halves), size=draws)]
        exhaustive = exhaustive and all_of_them
        halves = halves.reshape(-1, *moved.shape[1:])
        total, opposite = first_sums.sum(axis=0, dtype=np.float64), second_sums.sum(axis=0, dtype=np.float64)
        columns.append(evaluated(statistic, opposite - halves) - evaluated(statistic, total + halves))
        observed.append(evaluated(statistic, opposite) - evaluated(statistic, total))
    swapped, observed_differences = np.concatenate(columns, axis=1), np.concatenate(observed)
    by_stratum = [
        _tail(swapped[:, index], float(observed_differences[index]), exhaustive=exhaustive)
        for index in range(len(observed_differences))
    ]
    return _tail(swapped.mean(axis=1), float(observed_differences.mean()), exhaustive=exhaustive), by_stratum


def _tail(replicates: Floats, observed: float, *, exhaustive: bool) -> float:
    as_large = np.abs(replicates) >= abs(observed) * (1 - TOLERANCE)
    # A swap without a score says nothing against the null hypothesis.
    extreme = int((as_large | np.isnan(replicates)).sum())
    return extreme / len(replicates) if exhaustive else (1 + extreme) / (1 + len(replicates))


def recall_balance_p(right: Floats, gold: Codes, codes: Codes) -> float | None:
    """Return the p of equal recall over the positions of the gold answer, None with too few items to say.

    A model that prefers a position is right more often where the gold answer has it (Zheng et al. 2024, "Large
    Language Models Are Not Robust Multiple Choice Selectors", arXiv 2309.03882, section 2.2). Unlike shares of answers,
    recalls do not depend on how the gold answers are spread. The test is the chi-square score test of equal shares, in
    which the items of a cluster are one draw: with u_ik = (x_i - mean) * ([k_i = k] - n_k / n) and sums over clusters
    s_c, it is U' V^-1 U of U = sum_c s_c and V = sum_c s_c s_c', with K - 1 degrees of freedom.

    Args:
        right: Shape (n,): 1 for a right answer, 0 for a wrong one.
        gold: Shape (n,): the position of the gold answer, 0, 1, ... K - 1.
        codes: Shape (n,): the cluster of each item, 0, 1, ... G - 1.
    """
    from scipy.special import chdtrc

    counts = np.bincount(gold)
    positions = len(counts)
    if positions < 2 or counts.min() < LEAST_PER_POSITION or not 0 < right.mean() < 1:
        return None
    deviations = np.eye(positions)[gold] - counts / len(gold)
    contributions = (right - right.mean())[:, None] * deviations[:, 1:]
    sums = np.zeros((int(codes.max()) + 1, positions - 1))
    np.add.at(sums, codes, contributions)
    if len(sums) < LEAST_PER_POSITION * positions:
        return None
    total = sums.sum(axis=0)
    statistic = float(total @ np.linalg.pinv(sums.T @ sums) @ total)
    return float(chdtrc(positions - 1, statistic))


def mean_ranks(values: Floats) -> Floats:
    """Return the ranks within every row of values, 1 for the smallest; equal ones share a mean rank. Shape (..., n)."""

    def ranks(row: Floats) -> Floats:
        ordered = np.sort(row)
        below = np.searchsorted(ordered, row, "left")
        return np.asarray((below + np.searchsorted(ordered, row, "right") + 1) / 2)

    return np.apply_along_axis(ranks, -1, values)


def rank_intervals(replicates: Floats, *, level: float = 0.95) -> list[tuple[int, int]]:
    """Return the lowest and the highest rank of every system; 1 is the best, and equal scores share the better rank.

    Ranks are taken in each draw of a joint bootstrap, in which all systems have the same resampled items, and cut to
    the middle `level` of the draws (Goldstein and Spiegelhalter 1996, section 2).

    Args:
        replicates: Shape (draws, systems): the score of each system in each draw; higher is better.
        level: Coverage of each interval by itself.
    """
    better = (replicates[:, None, :] > replicates[:, :, None]).sum(axis=2)
    outside = (1 - level) / 2
    low = np.quantile(better + 1, outside, axis=0, method="lower")
    high = np.quantile(better + 1, 1 - outside, axis=0, method="higher")
    return [(int(lowest), int(highest)) for lowest, highest in zip(low, high, strict=True)]


def tied_with_best(values: Sequence[float], p: Sequence[float | None], *, alpha: float = 0.05) -> list[bool]:
    """Return which systems do not differ measurably from the best one, which is tied with itself.

    Args:
        values: The systems' scores; the first of the highest is the best.
        p: By system: that of its test against the best; None where there is no test, and for the best itself. They
            are adjusted by `holm` here. A system without a test is not separable from the best one.
        alpha: Family-wise error rate.
    """
    best = max(range(len(values)), key=values.__getitem__)
    levels = adjusted([None if index == best else value for index, value in enumerate(p)])
    return [level is None or level >= alpha for level in levels]


def adjusted(
    p: Sequence[float | None], correct: Callable[[Sequence[float]], Floats] | None = None
) -> list[float | None]:
    """Return p-values adjusted for the number of all of them, by `holm` where nothing else is named.

    What was not tested is None, stays None, and does not count.
    """
    levels = iter((correct or holm)([value for value in p if value is not None]).tolist())
    return [None if value is None else next(levels) for value in p]


def holm(p: Sequence[float] | Floats) -> Floats:
    """Return the adjusted p-values that control the family-wise error rate, whatever the dependence (Holm 1979).

    The i-th smallest of m p-values becomes the largest of (m - j + 1) p_(j) over j <= i, at most 1. Shape (m,).
    """
    order = np.argsort(p, kind="stable")
    return _adjusted(p, order, np.arange(len(order), 0, -1), np.maximum)


def benjamini_hochberg(p: Sequence[float] | Floats) -> Floats:
    """Return the adjusted p-values that control the false discovery rate (Benjamini and Hochberg 1995).

    The i-th smallest of m p-values becomes the smallest of m p_(j) / j over j >= i, at most 1. It holds for tests
    that are independent or positively dependent. Shape (m,).
    """
    order = np.argsort(p, kind="stable")[::-1]
    return _adjusted(p, order, len(order) / np.arange(len(order), 0, -1), np.minimum)


def _adjusted(p: Sequence[float] | Floats, order: Codes, factors: Any, extreme: np.ufunc) -> Floats:
    values = np.asarray(p, dtype=np.float64)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, extreme.accumulate(values[order] * factors))
    return adjusted


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """The first score after a change."""

    at: int
    """Its place in the series."""
    step: float
    """The mean of the scores from it to the next change, minus that of those before it."""
    p: float
    """Of the split with the largest standardised step of this part of the series."""


def change_points(scores: Floats, noise: Floats) -> list[ChangePoint]:
    """Return the changes of a series in their order.

    A series is split where its standardised step is largest, if at most 5 % of the replicates of the noise have as
    large a step at any place; then each part by itself (Scott and Knott 1974; Vostrikova 1981).

    Args:
        scores: Shape (n,), in the order of time.
        noise: Shape (draws, n): replicates of the scores without any change. Only differences within one matter.
    """
    splits = sorted(_splits(scores, noise, 0, len(scores)))
    ends = [0, *(at for at, _ in splits), len(scores)]
    return [
        ChangePoint(at=at, step=float(scores[at:after].mean() - scores[before:at].mean()), p=p)
        for (at, p), before, after in zip(splits, ends[:-2], ends[2:], strict=True)
    ]


def _splits(scores: Floats, noise: Floats, start: int, end: int) -> list[tuple[int, float]]:
    positions = np.arange(start + 1, end)
    if not len(positions):
        return []
    observed = np.array([scores[at:end].mean() - scores[start:at].mean() for at in positions])
    drawn = np.stack(
        [noise[:, at:end].mean(axis=1) - noise[:, start:at].mean(axis=1) for at in positions], axis=1
    )
    spread = drawn.std(axis=0)
    # No change lies between two neighbours that answered all items alike.
    possible = (noise[:, positions] - noise[:, positions - 1]).std(axis=0) > ROUNDING
    if not possible.any():
        return []
    steps = np.abs(observed[possible]) / spread[possible]
    largest = (np.abs(drawn[:, possible] - drawn[:, possible].mean(axis=0)) / spread[possible]).max(axis=1)
    p = (1 + int((largest >= steps.max() - ROUNDING).sum())) / (1 + len(noise))
    if p > LEVEL:
        return []
    at = int(positions[possible][steps.argmax()])
    return [*_splits(scores, noise, start, at), (at, p), *_splits(scores, noise, at, end)]


def mcnemar(first_only: int, second_only: int) -> float:
    """Return the exact two-sided p of McNemar's test (McNemar 1947; the binomial form).

    Under the null hypothesis each of the items that only one system has right is the first's with probability 1/2:
    p = min(1, 2 P(X <= min(b, c))) with X ~ Binomial(b + c, 1/2). Without such items p is 1. The items must be
    independent of each other.

    Args:
        first_only: Items that only the first system has right (b).
        second_only: Items that only the second has right (c).
    """
    from scipy.special import bdtr

    discordant = first_only + second_only
    if discordant == 0:
        return 1.0
    return min(1.0, 2 * float(bdtr(min(first_only, second_only), discordant, 0.5)))


def paired_sd(score: float, correlation: float) -> float:
    """Return the standard deviation of the difference of two systems' right (1) or wrong (0) answers to an item.

    Both have the expected score p and their answers the given correlation: sqrt(2 p (1 - p) (1 - correlation)), as
    in Miller 2024, arXiv 2411.00640, section 4.2.
    """
    return math.sqrt(2 * score * (1 - score) * (1 - correlation))


def mean_sd(deviations: Sequence[float], groups: Sequence[int]) -> float:
    """Return the standard deviation of a draw, such that the mean of all draws varies as the mean over languages does.

    With N draws in all, sqrt(N sum_s sd_s^2 / n_s) / S: the languages have draws of their own.

    Args:
        deviations: That of a draw in each of the S languages.
        groups: Draws in each of them; at least one.
    """
    spread = sum(sd**2 / draws for sd, draws in zip(deviations, groups, strict=True))
    return math.sqrt(spread * sum(groups)) / len(groups)


def noncentrality(freedom: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Return the true effect, in standard errors, that a two-sided t test finds with this power.

    It is the parameter d of the noncentral t distribution with P(T > t_{1 - alpha/2}) = power (Cohen 1988, section
    2.4): 2.80 for many degrees of freedom, 3.27 for 7. A significant effect of the wrong sign is not counted.

    Args:
        freedom: Degrees of freedom of the test; more than 0.
        alpha: Type-I error rate of the test.
        power: Probability of finding the effect.
    """
    from scipy.special import nctdtrinc, stdtrit

    return float(nctdtrinc(freedom, 1 - power, stdtrit(freedom, 1 - alpha / 2)))


def detectable_difference(sd: float, groups: int, *, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """Return the smallest true difference that a paired t test finds with this power.

    `noncentrality` of groups - 1 degrees of freedom times sd / sqrt(groups); of many groups this is the normal
    approximation of Miller 2024, arXiv 2411.00640, section 5, and Card et al. 2020. None for fewer than two groups, and
    where not even the largest difference, 1, is found.

    Args:
        sd: Standard deviation of the paired difference of one independent draw, in the unit of the score.
        groups: Number of independent draws: items, or clusters where items of a cluster go together.
        alpha: Type-I error rate of the test.
        power: Probability of finding the difference.
    """
    if groups < 2:
        return None
    difference = noncentrality(groups - 1, alpha=alpha, power=power) * sd / math.sqrt(groups)
    return difference if difference <= 1 else None


def needed_groups(
    sd: float, difference: float, *, draws: float = 1.0, alpha: float = 0.05, power: float = 0.8
) -> int:
    """Return the smallest number of groups whose mean shows a difference above 0 with this power.

    Args:
        sd: Standard deviation of the paired difference of one group.
        difference: The true one, in the unit of the score.
        draws: Independent draws in a group, such as the items of a language: the test of g groups has
            g * draws - 1 degrees of freedom.
        alpha: Type-I error rate of the test.
        power: Probability of finding the difference.
    """

    def shows(groups: int) -> bool:
        needed = noncentrality(groups * draws - 1, alpha=alpha, power=power)
        return needed * sd <= difference * math.sqrt(groups)

    # From one degree of freedom on.
    least = most = math.ceil(2 / draws)
    while not shows(most):
        most *= 2
    return bisect_left(range(most + 1), x=True, lo=least, key=shows)
