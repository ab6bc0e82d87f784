"""Which systems differ measurably, and which ranks they may have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


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
    tested = [index for index, p_value in enumerate(p) if p_value is not None and index != best]
    adjusted = dict(
        zip(
            tested,
            holm([p_value for p_value in map(p.__getitem__, tested) if p_value is not None]),
            strict=True,
        )
    )
    return [bool(adjusted[index] >= alpha) if index in adjusted else True for index in range(len(values))]


def holm(p: Sequence[float] | Floats) -> Floats:
    """Return the adjusted p-values that control the family-wise error rate, whatever the dependence (Holm 1979).

    The i-th smallest of m p-values becomes the largest of (m - j + 1) p_(j) over j <= i, at most 1. Shape (m,).
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    factors = np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * factors))
    return adjusted


def benjamini_hochberg(p: Sequence[float] | Floats) -> Floats:
    """Return the adjusted p-values that control the false discovery rate (Benjamini and Hochberg 1995).

    The i-th smallest of m p-values becomes the smallest of m p_(j) / j over j >= i, at most 1. It holds for tests
    that are independent or positively dependent. Shape (m,).
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")[::-1]
    factors = len(values) / np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(values[order] * factors))
    return adjusted
