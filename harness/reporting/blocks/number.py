"""Fractions and differences as all reports print them: times 100, with one digit."""

from __future__ import annotations

from collections.abc import Sequence

from harness.reporting.blocks.model import BLANK, Field
from harness.reporting.blocks.score import Score

HALF_LEGEND = "± half the 95 % interval"
INTERVAL_LEGEND = f"{HALF_LEGEND}; (a–b) its ends, where it is not symmetric"
LOPSIDED = 0.1
"""Intervals whose middle is further from the score than this part of their half are printed by their ends. The noise
of a percentile interval of 1,000 resamples stays below it."""
ROUNDING = 0.0005
"""Half of the last digit that is printed."""


def percent(value: float | None) -> str:
    """Return a fraction times 100 as all reports print it; ``-`` for None."""
    # Adding zero turns a rounded -0.0 into 0.0.
    return BLANK if value is None else f"{round(value * 100, 1) + 0.0:.1f}"


def signed(value: float | None) -> str:
    """Return a difference of fractions times 100, with its sign."""
    return BLANK if value is None else f"{round(value * 100, 1) + 0.0:+.1f}"


def p_text(value: float | None) -> str:
    """Return a p value with three digits; ``<.001`` for smaller ones."""
    return BLANK if value is None else "<.001" if value < 0.001 else f"{value:.3f}"


def level_text(name: str, value: float | None) -> str:
    """Return a p or q in a sentence: ``q = 0.010``, ``p < .001``; ``no p`` where it is not known."""
    if value is None:
        return f"no {name}"
    return f"{name} < .001" if value < 0.001 else f"{name} = {value:.3f}"


def interval_text(interval: Sequence[float] | None) -> str:
    """Return ``18.4 to 48.2``; ``-`` where there is no interval."""
    if interval is None or any(end is None for end in interval):
        return BLANK
    low, high = interval
    return f"{percent(low)} to {percent(high)}"


def signed_interval(low: float | None, high: float | None) -> str:
    """Return ``-16.3 to +3.3``; ``-`` where an end is not known."""
    return BLANK if low is None or high is None else f"{signed(low)} to {signed(high)}"


def uncertainty(value: float, interval: tuple[float, float] | None) -> str:
    """Return how sure a score in [0, 1] is, as all reports print it after the score; empty without an interval.

    ``±3.1`` is half a 95 % interval that is symmetric about the score; of others, and where ``±`` would reach beyond 0
    or 100, the ends are printed: ``(86.2–100)``. A difference, which may be below 0, has ``±`` beyond it too.
    """
    if interval is None:
        return ""
    low, high = interval
    half = round((high - low) * 50, 1)
    points = round(value * 100, 1)
    is_symmetric = abs(value - (low + high) / 2) <= max(ROUNDING, LOPSIDED * (high - low) / 2)
    if is_symmetric and (low < 0 or (round(points - half, 1) >= 0 and round(points + half, 1) <= 100)):
        return f"±{half:.1f}"
    if low < 0:
        return f"({signed_interval(low, high)})"
    return f"({_end(low)}–{_end(high)})"


def _end(value: float) -> str:
    text = percent(value)
    return text.removesuffix(".0") if text in {"0.0", "100.0"} else text


def score_field(score: Score) -> Field:
    """Return a score as a field: the number with its marks, and how sure it is; or the mark in its place."""
    if score.value is None:
        return Field(text=score.mark or BLANK)
    small = uncertainty(score.value, score.interval)
    return Field(text=f"{percent(score.value)}{score.mark}", small=small)
