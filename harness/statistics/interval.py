"""Standard errors and intervals of means and shares that respect clusters, and what they say of a margin.

Items of a cluster are one draw, and so are those that share a key with another one. A drop of more than a margin is
established by a test against the margin, and excluded by a bound on the drop (non-inferiority; Schuirmann 1987 for the
two one-sided t tests).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
AnyFloats = npt.NDArray[np.floating]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

Codes = Integers
SMALL_SAMPLE = 200
"""Below so many 0/1 items the normal approximation is poor and Wilson's interval is used."""
ROUNDING = 1e-9


class ClusterCodes:
    """Numbers the clusters of items that come in parts; keeps 16 bytes per item, and none if no item has a cluster.

    A cluster is known by 128 bits of its key's BLAKE2b digest, so that two keys of any cell do not meet.
    """

    def __init__(self) -> None:
        self._seen = 0
        self._digests: bytearray | None = None

    def add(self, clusters: Sequence[str | None]) -> None:
        """Take the clusters of the next items; None for an item without a cluster."""
        if self._digests is None and any(key is not None for key in clusters):
            self._digests = bytearray(b"".join(map(_alone, range(self._seen))))
        if self._digests is not None:
            self._digests += b"".join(
                _alone(number) if key is None else blake2b(key.encode(), digest_size=16).digest()
                for number, key in enumerate(clusters, start=self._seen)
            )
        self._seen += len(clusters)

    @property
    def alone(self) -> bool:
        """Whether no item has named a cluster yet."""
        return self._digests is None

    def codes(self) -> Codes:
        """Return the number of every item's cluster, by first appearance: shape (n,)."""
        if self._digests is None:
            return np.arange(self._seen, dtype=np.int64)
        digests = np.frombuffer(self._digests, dtype="S16")
        _, first, inverse = np.unique(digests, return_index=True, return_inverse=True)
        ranks = np.empty(len(first), dtype=np.int64)
        ranks[np.argsort(first)] = np.arange(len(first))
        return ranks[inverse]


def _alone(number: int) -> bytes:
    return blake2b(str(number).encode(), digest_size=16, person=b"alone").digest()


def linked_codes(*keyings: Codes) -> Codes:
    """Return the number of every item's draw: the connected component of items that share a number in a keying.

    Args:
        keyings: Each of shape (n,): the number of an item's key (its cluster in its language, its id in a parallel
            task); items with the same number in one keying are one draw.
    """
    if len(keyings) == 1:
        return np.unique(keyings[0], return_inverse=True)[1].astype(np.int64)
    n, offset = len(keyings[0]), len(keyings[0])
    columns = []
    for keying in keyings:
        columns.append(keying + offset)
        offset += int(keying.max(initial=-1)) + 1
    rows = np.tile(np.arange(n), len(keyings))
    return _component_codes(rows, np.concatenate(columns), n, offset)


def _component_codes(rows: Sequence[int] | Codes, columns: Sequence[int] | Codes, n: int, size: int) -> Codes:
    """Return the number of the connected component of each of the first n of the nodes, given the edges."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(rows)), (rows, columns)), shape=(size, size))
    _, components = connected_components(graph, directed=False)
    return np.unique(components[:n], return_inverse=True)[1].astype(np.int64)


def draw_codes(
    languages: Sequence[tuple[str, Sequence[str], Sequence[str | None]]],
    *,
    linked: bool,
    unpaired: Collection[str] = (),
) -> Codes:
    """Return the number of every item's draw, for the items of several languages after each other.

    Args:
        languages: The language, the ids and the clusters of its items. A cluster is one of its language.
        linked: Whether items of the same id are one draw, as the translations of an item are.
        unpaired: Languages whose ids name other items than those of the same ids elsewhere.
    """
    ids, clusters = ClusterCodes(), ClusterCodes()
    for language, names, cluster_keys in languages:
        ids.add(_own_names(names, language) if language in unpaired else names)
        clusters.add([None if key is None else f"{language} {key}" for key in cluster_keys])
    if not linked:
        return clusters.codes()
    return linked_codes(ids.codes()) if clusters.alone else linked_codes(ids.codes(), clusters.codes())


def _own_names(ids: Sequence[str], language: str) -> list[str]:
    """Return ids that are linked with those of no other language."""
    return [f"{language}\n{identifier}" for identifier in ids]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A standard error with an interval, in the unit of the score; None where it cannot be computed."""

    se: float | None = None
    low: float | None = None
    high: float | None = None
    method: str | None = None
    """How the interval was made, or why there is none."""
    groups: int | None = None
    """Number of the clusters that were drawn independently."""
    draws: int | None = None
    """Number of resamples, for what resamples."""
    seed: int | None = None
    """Of the resamples."""

    @property
    def ends(self) -> tuple[float, float] | None:
        """The lower and the upper end; None where there is no interval."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def to_json(self) -> dict[str, Any]:
        """Return the fields of ``results.json``; ``clusters``, ``draws`` and ``seed`` only where they apply."""
        fields: dict[str, Any] = {
            "se": self.se,
            "ci": self.ends and list(self.ends),
            "ci_method": self.method,
        }
        further = {"clusters": self.groups, "draws": self.draws, "seed": self.seed}
        return {**fields, **{name: value for name, value in further.items() if value is not None}}


def wilson(successes: float, n: float, *, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of a proportion (Wilson 1927)."""
    from scipy.special import ndtri

    z = float(ndtri(0.5 + level / 2))
    p = successes / n
    centre = p + z * z / (2 * n)
    reach = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (centre - reach) / scale), min(1.0, (centre + reach) / scale)


def clustered_mean(items: Floats, clusters: Sequence[str | None], *, level: float = 0.95) -> Interval:
    """Return the uncertainty of the mean of item scores in [0, 1].

    Items that share a cluster are one draw: with G clusters of n items,
    SE^2 = G / (G - 1) * sum_c (sum_{i in c} (x_i - mean))^2 / n^2 (Liang and Zeger's estimator for a mean, as in
    Miller 2024, arXiv 2411.00640), and the interval is t with G - 1 degrees of freedom, cut to [0, 1]. 0/1 items
    without a cluster that number fewer than 200, and those that are all equal, get Wilson's interval instead; where
    there are clusters, with their effective number (Kish 1965), n^2 / sum_c n_c^2.

    Args:
        items: Shape (n,).
        clusters: One key per item; None for an item without a cluster.
        level: Coverage of the interval.
    """
    numbered = ClusterCodes()
    numbered.add(clusters)
    return mean_of_codes(items, numbered.codes(), level=level)


def mean_of_codes(items: Floats, codes: Codes, *, level: float = 0.95) -> Interval:
    """Return the uncertainty as in `clustered_mean`, for cluster numbers 0, 1, ... G - 1 of shape (n,)."""
    n = len(items)
    if n == 0:
        return Interval()
    groups = int(codes.max()) + 1
    mean = float(items.mean())
    binary = bool(np.isin(items, (0.0, 1.0)).all())
    alone = groups == n
    constant = bool((items == items[0]).all())
    if groups < 2 or (constant and not binary):
        return Interval(method="one cluster" if groups < 2 else "constant")
    if constant:
        low, high = constant_bounds(mean, codes, level=level)
        method = "wilson" if alone else "clustered wilson"
        return Interval(se=0.0, low=low, high=high, method=method, groups=groups)
    sums = np.bincount(codes, weights=items - mean, minlength=groups)
    se = math.sqrt(groups / (groups - 1) * float(np.square(sums).sum())) / n
    if binary and alone and n < SMALL_SAMPLE:
        low, high = wilson(float(items.sum()), n, level=level)
        return Interval(se=se, low=low, high=high, method="wilson", groups=groups)
    return interval_of_t(mean, se, groups - 1, "t" if alone else "clustered t", groups, level=level)


def stratified_mean(values: Floats, strata: Codes, codes: Codes, *, level: float = 0.95) -> Interval:
    """Return the uncertainty of the mean over strata (languages) of the mean of item scores in [0, 1].

    Items of one draw are drawn jointly, whatever their strata: the translations of an item in a parallel task. With S
    strata of n_s items and the weights w_i = 1 / (S n_s), for G draws,
    SE^2 = G / (G - 1) * sum_c (sum_{i in c} w_i (x_i - mean_s(i)))^2, and the interval is t with G - 1 degrees of
    freedom, cut to [0, 1]. Strata are fixed. With one stratum this is the estimator of `clustered_mean`. Where each
    stratum is all right or all wrong, the ends are the means of the ends of Wilson's intervals.

    Args:
        values: Shape (n,).
        strata: Shape (n,): 0, 1, ... S - 1; each occurs.
        codes: Shape (n,): the number of each item's draw, 0, 1, ... G - 1.
        level: Coverage of the interval.
    """
    interval = _over_strata(values, strata, codes, "", 0.0, level)
    if interval.method != "constant" or not np.isin(values, (0.0, 1.0)).all():
        return interval
    masks = [strata == stratum for stratum in range(int(strata.max()) + 1)]
    ends = [constant_bounds(float(values[mask][0]), codes[mask], level=level) for mask in masks]
    low, high = np.mean(ends, axis=0)
    groups = int(codes.max()) + 1
    method = "wilson" if groups == len(values) else "clustered wilson"
    return Interval(se=0.0, low=float(low), high=float(high), method=method, groups=groups)


def paired_difference(differences: Floats, strata: Codes, codes: Codes, *, level: float = 0.95) -> Interval:
    """Return the uncertainty of the mean over strata (languages) of the mean difference of two systems.

    The differences are those of the same items, so what makes an item hard for both systems falls out (Miller
    2024, arXiv 2411.00640, section 4.2). The estimator is that of `stratified_mean`, cut to [-1, 1].

    Args:
        differences: Shape (n,): score of the one system minus score of the other, in [-1, 1].
        strata: Shape (n,): 0, 1, ... S - 1; each occurs.
        codes: Shape (n,): the number of each item's draw.
        level: Coverage of the interval.
    """
    return _over_strata(differences, strata, codes, "paired ", -1.0, level)


def independent_mean(intervals: Sequence[Interval], value: float, *, level: float = 0.95) -> Interval:
    """Return the uncertainty of the mean of scores in [0, 1] whose items were drawn independently of each other.

    SE^2 = sum_s SE_s^2 / S^2. The interval is t with the degrees of freedom of Welch (1947) and Satterthwaite (1946),
    (sum_s SE_s^2)^2 / sum_s (SE_s^4 / (G_s - 1)). A score whose items are all equal adds nothing; where another one
    has no standard error there is none, and `method` says why. Where the items of every score are all equal, the ends
    follow from theirs: value - sqrt(sum_s (x_s - low_s)^2) / S, and likewise above (Zou and Donner 2008).

    Args:
        intervals: The uncertainty of each score, with its groups.
        value: The mean of the scores.
        level: Coverage of the interval.
    """
    groups = [interval.groups or 2 for interval in intervals]
    without_se = [
        interval.method for interval in intervals if interval.se is None and interval.method != "constant"
    ]
    if not intervals or without_se:
        return Interval(method=without_se[0] if without_se else None)
    variances = np.square([interval.se or 0.0 for interval in intervals])
    total = float(variances.sum())
    if total == 0:
        return _of_bounds(intervals, value)
    freedom = total**2 / float((np.square(variances) / (np.array(groups) - 1)).sum())
    se = math.sqrt(total) / len(intervals)
    return interval_of_t(value, se, freedom, "stratified t", sum(groups), level=level)


def correlated_mean(
    value: float, weights: Floats, errors: Floats, correlations: Floats, *, level: float = 0.95
) -> Interval:
    """Return the normal interval of a weighted mean of scores: SE^2 = sum_tu w_t w_u r_tu SE_t SE_u.

    Args:
        value: The mean.
        weights: Shape (T,).
        errors: Shape (T,): the standard errors of the scores.
        correlations: Shape (T, T), as from `score_correlations`; those of independent scores are 0.
        level: Coverage of the interval.
    """
    from scipy.special import ndtri

    scaled = weights * errors
    se = math.sqrt(max(0.0, float(scaled @ correlations @ scaled)))
    reach = float(ndtri(0.5 + level / 2)) * se
    independent = np.count_nonzero(correlations) == len(weights)
    method = "normal, tasks independent" if independent else "normal, shared items"
    return Interval(se=se, low=max(0.0, value - reach), high=min(1.0, value + reach), method=method)


def score_correlations(contributions: Sequence[Floats], codes: Sequence[Codes]) -> Floats:
    """Return the correlations of scores that share draws of items: shape (T, T), with ones on the diagonal.

    It is that of the sums of the contributions by draw. A score that is constant correlates with none.

    Args:
        contributions: By score: what each of its items adds to it, with the sum 0.
        codes: By score: the number of each item's draw, shared by all scores.
    """
    groups = max(int(score_codes.max()) for score_codes in codes) + 1
    pairs = zip(codes, contributions, strict=True)
    sums = np.array(
        [np.bincount(score_codes, weights=values, minlength=groups) for score_codes, values in pairs]
    )
    scales = np.sqrt(np.square(sums).sum(axis=1))
    correlations: Floats = (sums @ sums.T) / np.maximum(np.outer(scales, scales), np.finfo(np.float64).tiny)
    np.fill_diagonal(correlations, 1.0)
    return correlations


def _of_bounds(intervals: Sequence[Interval], value: float) -> Interval:
    """Return the interval of a mean of independent scores that are all right or all wrong, from their intervals."""
    ends = [interval.ends for interval in intervals if interval.ends is not None]
    if len(ends) < len(intervals):
        return Interval(method="constant")
    # Such a score is the end of its own interval at 0 or 1, so that one of both distances is 0.
    below = math.sqrt(sum((1 - low) ** 2 for low, high in ends if high > 1 - ROUNDING)) / len(intervals)
    above = math.sqrt(sum(high**2 for low, high in ends if low < ROUNDING)) / len(intervals)
    return Interval(
        se=0.0,
        low=max(0.0, value - below),
        high=min(1.0, value + above),
        method="stratified wilson",
        groups=sum(interval.groups or 2 for interval in intervals),
    )


def constant_bounds(mean: float, codes: Codes, *, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval of items that are all right or all wrong, for the effective number of clusters.

    Args:
        mean: 0 or 1.
        codes: Shape (n,): the number of each item's cluster, 0, 1, ... G - 1.
        level: Coverage of the interval.
    """
    sizes = np.bincount(codes).astype(np.float64)
    count = float(sizes.sum() ** 2 / np.square(sizes).sum())
    low, high = wilson(mean * count, count, level=level)
    return min(low, mean), max(high, mean)


def _over_strata(
    values: Floats, strata: Codes, codes: Codes, prefix: str, least: float, level: float
) -> Interval:
    n = len(values)
    if n == 0:
        return Interval()
    groups = int(codes.max()) + 1
    counts = np.bincount(strata)
    means = np.bincount(strata, weights=values) / counts
    residuals = (values - means[strata]) / (len(counts) * counts[strata])
    if groups < 2 or not residuals.any():
        return Interval(method="one cluster" if groups < 2 else "constant")
    sums = np.bincount(codes, weights=residuals, minlength=groups)
    se = math.sqrt(groups / (groups - 1) * float(np.square(sums).sum()))
    method = f"{prefix}t" if groups == n else f"{prefix}clustered t"
    return interval_of_t(float(means.mean()), se, groups - 1, method, groups, level=level, least=least)


def interval_of_t(
    value: float,
    se: float,
    freedom: float,
    method: str,
    groups: int | None,
    *,
    level: float = 0.95,
    least: float = 0.0,
) -> Interval:
    """Return the t interval of a score in [least, 1]."""
    from scipy.special import stdtrit

    reach = float(stdtrit(freedom, 0.5 + level / 2)) * se
    low, high = max(least, value - reach), min(1.0, value + reach)
    return Interval(se=se, low=low, high=high, method=method, groups=groups)


def beyond_margin_p(difference: float, se: float, draws: int, margin: float) -> float:
    """Return the two-sided p of a t test that a score dropped by more than a margin.

    It is twice that of the one-sided t test of the hypothesis that the difference is -margin or more, at most 1, so
    that it is compared with the same alpha as other p-values of the project.

    Args:
        difference: New score minus old score, as a fraction.
        se: Its standard error over the draws, more than 0.
        draws: How many items, or clusters of items, were drawn independently; at least 2.
        margin: The drop that is accepted.
    """
    from scipy.special import stdtr

    return min(1.0, 2 * float(stdtr(draws - 1, (difference + margin) / se)))


def t_interval(difference: float, se: float, draws: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return the t interval of a difference, cut to [-1, 1]; the arguments are those of `beyond_margin_p`."""
    ends = interval_of_t(difference, se, draws - 1, "t", draws, level=level, least=-1.0).ends
    assert ends is not None
    return ends


def largest_drop(difference: float, se: float | None, draws: int, *, level: float = 0.95) -> float:
    """Return the largest drop that is not excluded.

    It is the lower end of the t interval with the other sign, but no less than the upper end of Wilson's interval
    (Wilson 1927) of as large a share of draws that are lost: a drop by m needs losses in at least a share m of the
    draws, and few draws may show none of them. Without it, rare losses would make the t interval too short.

    Args:
        difference: New score minus old score, as a fraction of scores in [0, 1].
        se: Its standard error; None, or 0, where all draws differ by the same amount.
        draws: How many items, or clusters of items, were drawn independently.
        level: Coverage of the interval, with half of the rest on each side.
    """
    low = t_interval(difference, se, draws, level=level)[0] if se else difference
    lost = max(0.0, -difference)
    return max(-low, wilson(lost * draws, draws, level=level)[1])
