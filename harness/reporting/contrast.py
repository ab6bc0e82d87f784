"""Differences of two scores that are taken as independent, from their own standard errors and intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Contrast", "Estimate", "contrast"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A score in [0, 1] with what is known of its uncertainty."""

    value: float
    se: float | None = None
    interval: tuple[float, float] | None = None
    """95 %."""
    draws: int = 0
    """Clusters, or single items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A score minus another one, as fractions."""

    difference: float
    low: float
    high: float
    p: float
    """Two-sided, of the normal distribution: for large samples."""

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval says that there is a difference."""
        return self.low > 0 or self.high < 0


def contrast(one: Estimate, other: Estimate) -> Contrast | None:
    """Return the first minus the second, with a 95 % interval and p.

    The interval recovers the variances from the two intervals, each of its own kind (MOVER; Zou and Donner 2008).
    Where both are of the same items, as in parallel data, it is too wide rather than too narrow. None where an error or
    interval is unknown, or both errors are 0.
    """
    if one.se is None or other.se is None or one.interval is None or other.interval is None:
        return None
    se = math.hypot(one.se, other.se)
    if se == 0:
        return None
    difference = one.value - other.value
    return Contrast(
        difference=difference,
        low=difference - math.hypot(one.value - one.interval[0], other.interval[1] - other.value),
        high=difference + math.hypot(one.interval[1] - one.value, other.value - other.interval[0]),
        p=math.erfc(abs(difference) / se / math.sqrt(2)),
    )
