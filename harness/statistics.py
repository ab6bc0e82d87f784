"""Standard errors and intervals of mean scores that respect clusters."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

__all__ = ["ClusterCodes", "Interval", "clustered_mean", "mean_of_codes", "paired_difference", "wilson"]

SMALL_SAMPLE = 200
"""Below so many 0/1 items the normal approximation is poor and Wilson's interval is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A standard error with an interval, in the unit of the score; None where it cannot be computed."""

    se: float | None
    low: float | None
    high: float | None
    method: str | None


def clustered_mean(
    items: npt.NDArray[np.float64], clusters: Sequence[str | None], *, level: float = 0.95
) -> Interval:
    """Return the uncertainty of the mean of item scores in [0, 1].

    Items that share a cluster are one draw: with G clusters of n items,
    SE^2 = G / (G - 1) * sum_c (sum_{i in c} (x_i - mean))^2 / n^2 (Liang and Zeger's estimator for a mean, as in
    Miller 2024, arXiv 2411.00640), and the interval is t with G - 1 degrees of freedom, cut to [0, 1]. 0/1 items
    that stand alone and number fewer than 200, or are all equal, get Wilson's interval instead.

    Args:
        items: Shape (n,).
        clusters: One key an item; None for an item that stands alone.
        level: Coverage of the interval.
    """
    numbered = ClusterCodes()
    numbered.add(clusters)
    return mean_of_codes(items, numbered.codes(), level=level)


def mean_of_codes(
    items: npt.NDArray[np.float64], codes: npt.NDArray[np.int64], *, level: float = 0.95
) -> Interval:
    """Return what `clustered_mean` does, for clusters that are numbered 0, 1, ... G - 1; `codes` has shape (n,)."""
    n = len(items)
    if n == 0:
        return Interval(se=None, low=None, high=None, method=None)
    groups = int(codes.max()) + 1
    mean = float(items.mean())
    binary = bool(np.isin(items, (0.0, 1.0)).all())
    alone = groups == n
    constant = bool((items == items[0]).all())
    if groups < 2 or (constant and not (binary and alone)):
        return Interval(se=None, low=None, high=None, method="one cluster" if groups < 2 else "constant")
    sums = np.bincount(codes, weights=items - mean, minlength=groups)
    se = math.sqrt(groups / (groups - 1) * float(np.square(sums).sum())) / n
    if binary and alone and (n < SMALL_SAMPLE or constant):
        low, high = wilson(float(items.sum()), n, level=level)
        return Interval(se=se, low=low, high=high, method="wilson")
    from scipy.special import stdtrit

    reach = float(stdtrit(groups - 1, 0.5 + level / 2)) * se
    method = "t" if alone else "clustered t"
    return Interval(se=se, low=max(0.0, mean - reach), high=min(1.0, mean + reach), method=method)


class ClusterCodes:
    """Numbers the clusters of items that come in parts; keeps 16 bytes an item, and none where all stand alone.

    A cluster is known by 128 bits of its key's BLAKE2b digest, so that two keys of any cell do not meet.
    """

    def __init__(self) -> None:
        self._seen = 0
        self._digests: bytearray | None = None

    def add(self, clusters: Sequence[str | None]) -> None:
        """Take the clusters of the next items; None for an item that stands alone."""
        if self._digests is None and any(key is not None for key in clusters):
            self._digests = bytearray(b"".join(map(_alone, range(self._seen))))
        if self._digests is not None:
            self._digests += b"".join(
                _alone(number) if key is None else blake2b(key.encode(), digest_size=16).digest()
                for number, key in enumerate(clusters, start=self._seen)
            )
        self._seen += len(clusters)

    def codes(self) -> npt.NDArray[np.int64]:
        """Return the number of every item's cluster, by first appearance: shape (n,)."""
        if self._digests is None:
            return np.arange(self._seen, dtype=np.int64)
        digests = np.frombuffer(self._digests, dtype="S16")
        _, first, inverse = np.unique(digests, return_index=True, return_inverse=True)
        ranks = np.empty(len(first), dtype=np.int64)
        ranks[np.argsort(first)] = np.arange(len(first))
        return ranks[inverse]


def paired_difference(
    differences: npt.NDArray[np.float64],
    strata: npt.NDArray[np.int64],
    keys: Sequence[Sequence[Hashable]],
    *,
    level: float = 0.95,
) -> Interval:
    """Return the uncertainty of the mean over strata (languages) of the mean difference of two systems.

    The differences are those of the same items, so what makes an item hard for both systems falls out (Miller
    2024, arXiv 2411.00640, section 4.2). Items that share a key, directly or through other items, are one draw c
    of G; with S strata of n_s items and the weights w_i = 1 / (S n_s),
    SE^2 = G / (G - 1) * sum_c (sum_{i in c} w_i (d_i - mean_s(i)))^2, and the interval is t with G - 1 degrees of
    freedom, cut to [-1, 1]. With one stratum this is the estimator of `clustered_mean`.

    Args:
        differences: Shape (n,): score of the one system minus score of the other, in [-1, 1].
        strata: Shape (n,): 0, 1, ... S - 1; each occurs.
        keys: What marks an item's draw; empty for an item that stands alone.
        level: Coverage of the interval.
    """
    n = len(differences)
    if n == 0:
        return Interval(se=None, low=None, high=None, method=None)
    codes = _linked_codes(keys)
    groups = int(codes.max()) + 1
    counts = np.bincount(strata)
    means = np.bincount(strata, weights=differences) / counts
    residuals = (differences - means[strata]) / (len(counts) * counts[strata])
    if groups < 2 or not residuals.any():
        return Interval(se=None, low=None, high=None, method="one cluster" if groups < 2 else "constant")
    sums = np.bincount(codes, weights=residuals, minlength=groups)
    se = math.sqrt(groups / (groups - 1) * float(np.square(sums).sum()))
    from scipy.special import stdtrit

    reach = float(stdtrit(groups - 1, 0.5 + level / 2)) * se
    value = float(means.mean())
    method = "paired t" if groups == n else "paired clustered t"
    return Interval(se=se, low=max(-1.0, value - reach), high=min(1.0, value + reach), method=method)


def wilson(successes: float, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of a proportion (Wilson 1927)."""
    from scipy.special import ndtri

    z = float(ndtri(0.5 + level / 2))
    p = successes / n
    centre = p + z * z / (2 * n)
    reach = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (centre - reach) / scale), min(1.0, (centre + reach) / scale)


def _alone(number: int) -> bytes:
    return blake2b(str(number).encode(), digest_size=16, person=b"alone").digest()


def _linked_codes(keys: Sequence[Sequence[Hashable]]) -> npt.NDArray[np.int64]:
    """Return the number of every item's draw: the connected component of items that share keys."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    numbers: dict[Hashable, int] = {}
    pairs = [
        (index, len(keys) + numbers.setdefault(key, len(numbers)))
        for index, own in enumerate(keys)
        for key in own
    ]
    rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
    size = len(keys) + len(numbers)
    graph = coo_array((np.ones(len(pairs)), (rows, columns)), shape=(size, size))
    _, components = connected_components(graph, directed=False)
    return np.unique(components[: len(keys)], return_inverse=True)[1].astype(np.int64)
