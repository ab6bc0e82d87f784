"""Shares of items that are right or wrong."""

from __future__ import annotations

import math


def wilson(successes: float, n: float, *, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of a proportion (Wilson 1927)."""
    from scipy.special import ndtri

    z = float(ndtri(0.5 + level / 2))
    p = successes / n
    centre = p + z * z / (2 * n)
    reach = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (centre - reach) / scale), min(1.0, (centre + reach) / scale)


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
