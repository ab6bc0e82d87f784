"""What a standard error comes with."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Interval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A standard error with an interval, in the unit of the score; None where it cannot be computed."""

    se: float | None
    low: float | None
    high: float | None
    method: str | None
    """How the interval was made, or why there is none."""
    groups: int | None = None
    """Number of the clusters that were drawn independently."""
    draws: int | None = None
    """Number of resamples, for what resamples."""
    seed: int | None = None
    """Of the resamples."""
