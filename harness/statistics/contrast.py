"""Differences between languages of one system, paired where items are shared, and intervals over several seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from harness.statistics.bootstrap import percentile_interval
from harness.statistics.interval import Codes, Floats, Interval, interval_of_t

Common = Callable[[Floats], float]
"""From the weights of the languages to what `common_variance` returns for their weighted sum."""
NORMAL = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""
SMALLEST = -690.0
"""Logarithm of the smallest p that is looked for."""
HALVINGS = 50
ROUNDING = 1e-12
"""Rounding error of differences that are all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A weighted sum of the scores of languages, such as one of them minus the mean of the others."""

    value: float
    interval: Interval
    """95 %; its method says whether the languages were paired or taken as independent."""
    p: float | None = None
    """Two-sided, against 0: the interval of the level 1 - p ends there."""


def no_common(weights: Floats) -> float:
    """Return 0: one seed has nothing in common with others."""
    return 0.0


def paired_contrasts(scores: Floats, strata: Codes, codes: Codes, weights: Floats) -> list[Contrast]:
    """Return contrasts of languages whose items are drawn together: the translations of an item.

    With the weights w_s of the S languages and n_s items each, for G draws, SE^2 = G / (G - 1) * sum_c (sum_{i in c}
    w_s(i) / n_s(i) * (x_i - mean_s(i)))^2: the estimator of `stratified_mean` with other weights, in which what makes
    an item hard in all languages falls out (Miller 2024, arXiv 2411.00640, section 4.2). Seeds add as in `over_seeds`.

    Args:
        scores: Shape (seeds, n): the items of all languages after each other.
        strata: Shape (n,): the language, 0, 1, ... S - 1; each occurs.
        codes: Shape (n,): the number of each item's draw, 0, 1, ... G - 1.
        weights: Shape (contrasts, S).
    """
    counts = np.bincount(strata)
    groups, size = int(codes.max()) + 1, len(counts)
    means = np.array([np.bincount(strata, weights=row) / counts for row in scores])
    residuals = (scores.mean(axis=0) - means.mean(axis=0)[strata]) / counts[strata]
    apart = (scores - means[:, strata]) / counts[strata]
    indices = codes * size + strata
    sums = np.bincount(indices, weights=residuals, minlength=groups * size).reshape(groups, size)
    members = np.bincount(indices, minlength=groups * size).reshape(groups, size)
    contrasts = []
    for weight in weights:
        by_seed = means @ weight
        weighted = members[:, weight != 0]
        drawn = int(weighted.any(axis=1).sum())
        by_draw = sums @ weight
        if drawn < 2 or float(np.abs(by_draw).max()) < ROUNDING:
            interval = Interval(method="one cluster" if drawn < 2 else "constant")
        else:
            se = math.sqrt(drawn / (drawn - 1) * float(np.square(by_draw).sum()))
            name = "paired" if ((weighted > 0).sum(axis=1) > 1).any() else "independent"
            method = f"{name} clustered t" if (weighted > 1).any() else f"{name} t"
            interval = interval_of_t(float(by_seed.mean()), se, drawn - 1, method, drawn, least=-1.0)
        common = common_variance(apart * weight[strata], codes)
        contrasts.append(_tested(interval, by_seed, common))
    return contrasts


def drawn_contrasts(
    values: Floats,
    replicates: Floats | None,
    drawn: Interval,
    weights: Floats,
    *,
    common: Common = no_common,
) -> list[Contrast]:
    """Return contrasts of set-level scores from resamples of the items of all languages together.

    Args:
        values: Shape (seeds, S): the scores.
        replicates: Shape (draws, S): those of every resample; None where there are none.
        drawn: Has the method, groups and seed of the resamples, or why there are none.
        weights: Shape (contrasts, S).
        common: What seeds and items have in common.
    """

    def interval(weight: Floats) -> Interval:
        if replicates is None:
            return drawn
        method, seed = f"paired {drawn.method}", drawn.seed or 0
        return percentile_interval(replicates @ weight, method=method, groups=drawn.groups, seed=seed)

    return [_tested(interval(weight), values @ weight, common(weight)) for weight in weights]


def independent_contrasts(
    intervals: Sequence[Interval], values: Floats, weights: Floats, *, common: Common = no_common
) -> list[Contrast]:
    """Return contrasts of languages whose items were drawn independently of each other.

    The interval recovers the variances from those of the languages, each of its own kind (MOVER; Zou and Donner
    2008): with the distances d_s from a score to the end of its interval, those of the contrast are
    sqrt(sum_s (w_s d_s)^2). Where the items of a language are all right or all wrong, its error is that of the
    reach of its interval, not 0. There is no interval where a language has none.

    Args:
        intervals: The uncertainty of the scores averaged over seeds.
        values: Shape (seeds, S): the scores.
        weights: Shape (contrasts, S).
        common: What seeds and items have in common.
    """
    means = values.mean(axis=0).tolist()

    def interval(weight: Floats) -> Interval:
        terms = zip(intervals, means, weight.tolist(), strict=True)
        return _recovered([term for term in terms if term[2]])

    return [_tested(interval(weight), values @ weight, common(weight)) for weight in weights]


def _recovered(terms: Sequence[tuple[Interval, float, float]]) -> Interval:
    """Return the interval of a weighted sum from the intervals, scores and weights of its terms."""
    value = sum(weight * score for _, score, weight in terms)
    below = above = variance = 0.0
    for interval, score, weight in terms:
        if interval.ends is None:
            return Interval(method=interval.method)
        ends = (score - interval.ends[0], interval.ends[1] - score)
        down, up = ends if weight > 0 else ends[::-1]
        below, above = below + (weight * down) ** 2, above + (weight * up) ** 2
        variance += (weight * (interval.se or max(ends) / NORMAL)) ** 2
    return Interval(
        se=math.sqrt(variance),
        low=max(-1.0, value - math.sqrt(below)),
        high=min(1.0, value + math.sqrt(above)),
        method="independent",
        groups=sum(interval.groups or 2 for interval, _, _ in terms),
    )


def common_variance(contributions: Floats, codes: Codes) -> float:
    """Return the variance of a mean over seeds that comes from how differently the seeds answer the same items.

    It is part of the variance of items as well as of that of seeds: with what item draw c adds to the score of seed k
    of K beyond what it adds on average, e_kc, it is K / (K - 1) * G / (G - 1) * sum_kc e_kc^2 / K^2. 0 for one seed.

    Args:
        contributions: Shape (seeds, n): what each item adds to the score, by seed.
        codes: Shape (n,): the number of each item's draw, 0, 1, ... G - 1.
    """
    seeds, groups = len(contributions), int(codes.max()) + 1
    if seeds < 2 or groups < 2:
        return 0.0
    apart = contributions - contributions.mean(axis=0)
    sums = [np.bincount(codes, weights=row, minlength=groups) for row in apart]
    return groups / ((groups - 1) * (seeds - 1) * seeds) * float(np.square(sums).sum())


def over_seeds(interval: Interval, by_seed: Floats, common: float = 0.0, *, least: float = 0.0) -> Interval:
    """Return the interval of a mean over seeds that covers other seeds as well as other items.

    The interval of the seeds' average covers items alone. Seeds are a second source of variance, s^2 / K for K seeds
    whose scores have the variance s^2. What the two have in common counts once (Cameron, Gelbach and Miller 2011,
    equation 2.7): SE^2 = a + b with a = max(0, SE_items^2 - common) and b = s^2 / K. The quantile is that of Cochran
    and Cox (1950), (a t_{G-1} + b t_{K-1}) / (a + b): with few seeds, the degrees of freedom of Satterthwaite (1946)
    give too narrow intervals (docs/error-bars.md). Seeds that all score the same change nothing.

    Args:
        interval: That of the items, for the scores averaged over seeds.
        by_seed: Shape (K,): the score of each seed.
        common: From `common_variance`.
        least: The lowest possible score.
    """
    variances = _variances(interval, by_seed, common)
    if interval.se is None or variances[1] == 0:
        return interval
    value, reach = float(by_seed.mean()), _reach(interval, variances, len(by_seed), 0.05)
    return Interval(
        se=math.sqrt(sum(variances)),
        low=max(least, value - reach),
        high=min(1.0, value + reach),
        method=f"{interval.method}, and seeds",
        groups=interval.groups,
    )


def _variances(interval: Interval, by_seed: Floats, common: float) -> tuple[float, float]:
    """Return the variance of the items without the common part, and that of the seeds."""
    items = (interval.se or 0.0) ** 2
    spread = float(by_seed.var(ddof=1)) / len(by_seed) if len(by_seed) > 1 else 0.0
    return (items, 0.0) if spread < ROUNDING**2 else (max(0.0, items - common), spread)


def _reach(interval: Interval, variances: tuple[float, float], seeds: int, tail: float) -> float:
    """Return half the interval of the level 1 - tail."""
    from scipy.special import stdtrit

    items, spread = variances
    quantiles = -stdtrit([max(1.0, (interval.groups or 2) - 1), max(1.0, seeds - 1.0)], tail / 2)
    return float(items * quantiles[0] + spread * quantiles[1]) / math.sqrt(items + spread)


def _tested(interval: Interval, by_seed: Floats, common: float) -> Contrast:
    """Return a contrast with its interval over seeds, and the p at which the interval ends at 0."""
    value = float(by_seed.mean())
    total_interval = over_seeds(interval, by_seed, common, least=-1.0)
    if not total_interval.se:
        return Contrast(value=value, interval=total_interval)
    variances = _variances(interval, by_seed, common)
    below, above = SMALLEST, 0.0
    for _ in range(HALVINGS):
        middle = (below + above) / 2
        is_beyond = _reach(interval, variances, len(by_seed), math.exp(middle)) < abs(value)
        below, above = (below, middle) if is_beyond else (middle, above)
    return Contrast(value=value, interval=total_interval, p=math.exp(above))
