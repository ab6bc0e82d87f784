"""One field of a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Score", "interval_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The content of one field: a score in [0, 1], or why there is none."""

    value: float | None = None
    interval: tuple[float, float] | None = None
    """The ends of the 95 % interval."""
    mark: str = ""
    """``*`` scored on another split than test, ``!`` failed, ``~`` over fewer languages, ``°`` not comparable;
    those of `harness.reporting.unreadable`, `harness.reporting.item_origin` and `harness.reporting.mean_row`."""


def interval_of(kept: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the ends of the interval that results keep with a value, or None where there is none."""
    interval = kept.get("ci")
    return None if interval is None else (interval[0], interval[1])
