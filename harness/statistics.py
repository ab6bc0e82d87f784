"""Standard errors and intervals of mean scores that respect clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Interval", "clustered_mean", "wilson"]

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
    n = len(items)
    if n == 0:
        return Interval(se=None, low=None, high=None, method=None)
    codes = _cluster_codes(clusters)
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


def wilson(successes: float, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of a proportion (Wilson 1927)."""
    from scipy.special import ndtri

    z = float(ndtri(0.5 + level / 2))
    p = successes / n
    centre = p + z * z / (2 * n)
    reach = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (centre - reach) / scale), min(1.0, (centre + reach) / scale)


def _cluster_codes(clusters: Sequence[str | None]) -> npt.NDArray[np.int64]:
    codes: dict[object, int] = {}
    keys = [("alone", index) if key is None else key for index, key in enumerate(clusters)]
    return np.array([codes.setdefault(key, len(codes)) for key in keys], dtype=np.int64)
