"""Adjusts p-values for the number of tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["benjamini_hochberg", "holm"]

Floats = npt.NDArray[np.float64]


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
    m = len(values)
    order = np.argsort(values, kind="stable")
    scaled = values[order] * m / np.arange(1, m + 1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return adjusted
