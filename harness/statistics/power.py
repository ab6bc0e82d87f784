"""How large a difference between two systems must be for a test set to show it."""

from __future__ import annotations

import math

__all__ = ["detectable_difference", "needed_groups", "paired_sd"]


def paired_sd(score: float, correlation: float) -> float:
    """Return the standard deviation of the difference of two systems' right (1) or wrong (0) answers to an item.

    Both have the expected score p and their answers the given correlation: sqrt(2 p (1 - p) (1 - correlation)), as
    in Miller 2024, arXiv 2411.00640, section 4.2.
    """
    return math.sqrt(2 * score * (1 - score) * (1 - correlation))


def detectable_difference(sd: float, groups: int, *, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """Return the smallest true difference that a paired test finds with this power; None without groups.

    MDE = (z_{1 - alpha/2} + z_power) * sd / sqrt(groups), for a two-sided test (Miller 2024, arXiv 2411.00640,
    section 5; Card et al. 2020). At most 1, the largest difference that there is.

    Args:
        sd: Standard deviation of the paired difference of one independent draw, in the unit of the score.
        groups: Number of independent draws: items, or clusters where items of a cluster go together.
        alpha: Type-I error rate of the test.
        power: Probability of finding the difference.
    """
    return None if groups < 1 else min(1.0, _factor(alpha, power) * sd / math.sqrt(groups))


def needed_groups(sd: float, difference: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """Return the number of independent draws of which `detectable_difference` is at most a difference above 0."""
    return max(1, math.ceil((_factor(alpha, power) * sd / difference) ** 2))


def _factor(alpha: float, power: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(1 - alpha / 2) + ndtri(power))
