"""Standard errors and intervals of mean scores that respect clusters."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from harness.statistics.cluster import ClusterCodes, Codes, key_codes
from harness.statistics.interval import Interval
from harness.statistics.proportion import wilson

__all__ = [
    "SMALL_SAMPLE",
    "clustered_mean",
    "independent_mean",
    "mean_of_codes",
    "paired_difference",
    "stratified_mean",
]

Floats = npt.NDArray[np.float64]
SMALL_SAMPLE = 200
"""Below so many 0/1 items the normal approximation is poor and Wilson's interval is used."""
_NOTHING = Interval(se=None, low=None, high=None, method=None)


def clustered_mean(items: Floats, clusters: Sequence[str | None], *, level: float = 0.95) -> Interval:
    """Return the uncertainty of the mean of item scores in [0, 1].

    Items that share a cluster are one draw: with G clusters of n items,
    SE^2 = G / (G - 1) * sum_c (sum_{i in c} (x_i - mean))^2 / n^2 (Liang and Zeger's estimator for a mean, as in
    Miller 2024, arXiv 2411.00640), and the interval is t with G - 1 degrees of freedom, cut to [0, 1]. 0/1 items
    without a cluster that number fewer than 200, or are all equal, get Wilson's interval instead.

    Args:
        items: Shape (n,).
        clusters: One key per item; None for an item without a cluster.
        level: Coverage of the interval.
    """
    numbered = ClusterCodes()
    numbered.add(clusters)
    return mean_of_codes(items, numbered.codes(), level=level)


def mean_of_codes(items: Floats, codes: Codes, *, level: float = 0.95) -> Interval:
    """Return what `clustered_mean` does, for clusters that are numbered 0, 1, ... G - 1; `codes` has shape (n,)."""
    n = len(items)
    if n == 0:
        return _NOTHING
    groups = int(codes.max()) + 1
    mean = float(items.mean())
    binary = bool(np.isin(items, (0.0, 1.0)).all())
    alone = groups == n
    constant = bool((items == items[0]).all())
    if groups < 2 or (constant and not (binary and alone)):
        return _without("one cluster" if groups < 2 else "constant")
    sums = np.bincount(codes, weights=items - mean, minlength=groups)
    se = math.sqrt(groups / (groups - 1) * float(np.square(sums).sum())) / n
    if binary and alone and (n < SMALL_SAMPLE or constant):
        low, high = wilson(float(items.sum()), n, level=level)
        return Interval(se=se, low=low, high=high, method="wilson", groups=groups)
    return _t(mean, se, groups - 1, "t" if alone else "clustered t", level, groups)


def stratified_mean(values: Floats, strata: Codes, codes: Codes, *, level: float = 0.95) -> Interval:
    """Return the uncertainty of the mean over strata (languages) of the mean of item scores in [0, 1].

    Items of one draw are drawn jointly, whatever their strata: the translations of an item in a parallel task. With S
    strata of n_s items and the weights w_i = 1 / (S n_s), for G draws,
    SE^2 = G / (G - 1) * sum_c (sum_{i in c} w_i (x_i - mean_s(i)))^2, and the interval is t with G - 1 degrees of
    freedom, cut to [0, 1]. Strata are fixed. With one stratum this is the estimator of `clustered_mean`.

    Args:
        values: Shape (n,).
        strata: Shape (n,): 0, 1, ... S - 1; each occurs.
        codes: Shape (n,): the number of each item's draw, 0, 1, ... G - 1.
        level: Coverage of the interval.
    """
    return _over_strata(values, strata, codes, "", 0.0, level)


def paired_difference(
    differences: Floats, strata: Codes, keys: Sequence[Sequence[Hashable]] | Codes, *, level: float = 0.95
) -> Interval:
    """Return the uncertainty of the mean over strata (languages) of the mean difference of two systems.

    The differences are those of the same items, so what makes an item hard for both systems falls out (Miller
    2024, arXiv 2411.00640, section 4.2). The estimator is that of `stratified_mean`, cut to [-1, 1].

    Args:
        differences: Shape (n,): score of the one system minus score of the other, in [-1, 1].
        strata: Shape (n,): 0, 1, ... S - 1; each occurs.
        keys: The number of each item's draw, shape (n,); or what marks it: items that share a key, directly or
            through other items, are one draw, and one without keys is its own draw.
        level: Coverage of the interval.
    """
    codes = keys if isinstance(keys, np.ndarray) else key_codes(keys)
    return _over_strata(differences, strata, codes, "paired ", -1.0, level)


def independent_mean(parts: Sequence[Interval], value: float, *, level: float = 0.95) -> Interval:
    """Return the uncertainty of the mean of scores in [0, 1] whose items were drawn independently of each other.

    SE^2 = sum_s SE_s^2 / S^2. The interval is t with the degrees of freedom of Welch (1947) and Satterthwaite (1946),
    (sum_s SE_s^2)^2 / sum_s (SE_s^4 / (G_s - 1)). A part whose items are all equal adds nothing; where another one
    has no standard error there is none, and `method` says why.

    Args:
        parts: The uncertainty of each score, with its groups.
        value: The mean of the scores.
        level: Coverage of the interval.
    """
    groups = [part.groups or 2 for part in parts]
    without_se = [part.method for part in parts if part.se is None and part.method != "constant"]
    if not parts or without_se:
        return _without(without_se[0] if without_se else None)
    variances = np.square([part.se or 0.0 for part in parts])
    total = float(variances.sum())
    if total == 0:
        return _without("constant")
    freedom = total**2 / float((np.square(variances) / (np.array(groups) - 1)).sum())
    se = math.sqrt(total) / len(parts)
    return _t(value, se, freedom, "stratified t", level, sum(groups))


def _over_strata(
    values: Floats, strata: Codes, codes: Codes, prefix: str, least: float, level: float
) -> Interval:
    n = len(values)
    if n == 0:
        return _NOTHING
    groups = int(codes.max()) + 1
    counts = np.bincount(strata)
    means = np.bincount(strata, weights=values) / counts
    residuals = (values - means[strata]) / (len(counts) * counts[strata])
    if groups < 2 or not residuals.any():
        return _without("one cluster" if groups < 2 else "constant")
    sums = np.bincount(codes, weights=residuals, minlength=groups)
    se = math.sqrt(groups / (groups - 1) * float(np.square(sums).sum()))
    method = f"{prefix}t" if groups == n else f"{prefix}clustered t"
    return _t(float(means.mean()), se, groups - 1, method, level, groups, least=least)


def _t(
    value: float, se: float, freedom: float, method: str, level: float, groups: int, *, least: float = 0.0
) -> Interval:
    from scipy.special import stdtrit

    reach = float(stdtrit(freedom, 0.5 + level / 2)) * se
    return Interval(
        se=se, low=max(least, value - reach), high=min(1.0, value + reach), method=method, groups=groups
    )


def _without(method: str | None) -> Interval:
    return Interval(se=None, low=None, high=None, method=method)
