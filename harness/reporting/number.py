"""Fractions and differences as all reports print them: times 100, with one digit."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["NOTHING", "interval_text", "percent", "signed"]

NOTHING = "-"


def percent(value: float | None) -> str:
    """Return a fraction times 100 as all reports print it; ``-`` for None."""
    # Adding zero turns a rounded -0.0 into 0.0.
    return NOTHING if value is None else f"{round(value * 100, 1) + 0.0:.1f}"


def signed(value: float | None) -> str:
    """Return a difference of fractions times 100, with its sign."""
    return NOTHING if value is None else f"{round(value * 100, 1) + 0.0:+.1f}"


def interval_text(interval: Sequence[float] | None) -> str:
    """Return ``18.4 to 48.2``; ``-`` where there is no interval."""
    if interval is None or any(end is None for end in interval):
        return NOTHING
    low, high = interval
    return f"{percent(low)} to {percent(high)}"
