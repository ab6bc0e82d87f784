"""One field of a report."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Score"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What stands in one field: a score in [0, 1], or why there is none."""

    value: float | None = None
    reach: float | None = None
    """Half the width of the 95 % interval."""
    mark: str = ""
    """``*`` another split stands in for test, ``!`` failed, ``~`` over fewer languages, ``°`` not comparable."""
