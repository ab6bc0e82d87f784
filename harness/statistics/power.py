"""How large a difference between two systems must be for a test set to show it."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence


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
