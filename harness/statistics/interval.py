"""What a standard error comes with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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

    def to_json(self) -> dict[str, Any]:
        """Return what ``results.json`` keeps: ``se``, ``ci``, ``ci_method``, and where they apply what it rests on."""
        shown: dict[str, Any] = {
            "se": self.se,
            "ci": None if self.low is None or self.high is None else [self.low, self.high],
            "ci_method": self.method,
        }
        further = {"clusters": self.groups, "draws": self.draws, "seed": self.seed}
        return {**shown, **{name: value for name, value in further.items() if value is not None}}
