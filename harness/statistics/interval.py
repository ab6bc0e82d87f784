"""A standard error with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
        """Return the fields of ``results.json``; ``clusters``, ``draws`` and ``seed`` only where they apply."""
        fields: dict[str, Any] = {
            "se": self.se,
            "ci": None if self.low is None or self.high is None else [self.low, self.high],
            "ci_method": self.method,
        }
        further = {"clusters": self.groups, "draws": self.draws, "seed": self.seed}
        return {**fields, **{name: value for name, value in further.items() if value is not None}}
