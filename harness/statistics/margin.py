"""Whether a difference of two systems is larger than a margin, and which drop it still allows.

A drop of more than the margin is established by a test against the margin, and excluded by a bound on the drop
(non-inferiority; Schuirmann 1987 for the two one-sided t tests).
"""

from __future__ import annotations

from harness.statistics.proportion import wilson


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
    from scipy.special import stdtrit

    reach = float(stdtrit(draws - 1, 0.5 + level / 2)) * se
    return max(-1.0, difference - reach), min(1.0, difference + reach)


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
