"""One field of a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Score", "half_width"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What stands in one field: a score in [0, 1], or why there is none."""

    value: float | None = None
    reach: float | None = None
    """Half the width of the 95 % interval."""
    mark: str = ""
    """``*`` another split stands in for test, ``!`` failed, ``~`` over fewer languages, ``°`` not comparable;
    those of `harness.reporting.item_origin` and `harness.reporting.mean_row`."""


def half_width(kept: Mapping[str, Any]) -> float | None:
    """Return half the width of the interval that results keep beside a value, or None where there is none."""
    interval = kept.get("ci")
    return None if interval is None else (interval[1] - interval[0]) / 2
