"""Scores: the record of one, how all reports write it (times 100, with one digit), and the colour of its field.

The number is always there, the colour only helps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from harness.reporting.blocks.model import BLANK, Field, Ramp

HALF_LEGEND = "± half the 95 % interval"
INTERVAL_LEGEND = f"{HALF_LEGEND}; (a–b) its ends, where it is not symmetric"
LOPSIDED = 0.1
"""Intervals whose middle is further from the score than this part of their half are printed by their ends. The noise
of a percentile interval of 1,000 resamples stays below it."""
ROUNDING = 0.0005
"""Half of the last digit that is printed."""
STEPS = 9
CLASSES: Mapping[Ramp, str] = {"score": "h", "error": "e", "difference": "d", "share": "g"}
SCALES: Mapping[Ramp, tuple[float, float]] = {
    "score": (0.0, 1.0),
    "error": (0.0, 1.0),
    "difference": (-0.2, 0.2),
    "share": (0.0, 1.0),
}
"""The same in every table, so that a colour has one meaning; what is beyond has the last colour."""


@dataclass(frozen=True, slots=True)
class Score:
    """The content of one field: a score in [0, 1], or why there is none."""

    value: float | None = None
    interval: tuple[float, float] | None = None
    """The ends of the 95 % interval."""
    mark: str = ""
    """``*`` scored on another split than test, ``!`` failed, ``~`` over fewer languages, ``°`` not comparable;
    those of `marks` and `mean_row` in `harness.reporting.overview`."""

    @property
    def reach(self) -> float | None:
        """Half of its interval, the longer side of one that is not symmetric; None where it is not known."""
        if self.value is None or self.interval is None:
            return None
        return max(self.value - self.interval[0], self.interval[1] - self.value)


def mean_score(scores: Sequence[Score]) -> Score:
    """Return the mean of the scores that have a value."""
    values = [score.value for score in scores if score.value is not None]
    return Score(value=fmean(values)) if values else Score()


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


def heat_class(value: float | None, low: float, high: float, *, ramp: Ramp = "score") -> str:
    """Return the class of a field: ``h0`` to ``h8`` from low to high, with another letter for each ramp."""
    if value is None:
        return "absent"
    fraction = 0.5 if high <= low else (value - low) / (high - low)
    return f"{CLASSES[ramp]}{min(STEPS - 1, max(0, int(fraction * STEPS)))}"


def levels(scores: Sequence[Score]) -> list[float | None]:
    """Return the values by which the fields of scores are coloured, so that no colour differs by noise alone.

    From the best value down, fields that do not differ measurably from the first of their band share the band's mean;
    the next one begins a new band. Values without an interval keep their own level.
    """
    smoothed = [score.value for score in scores]
    measured = [
        (score.value, score.reach, index)
        for index, score in enumerate(scores)
        if score.value is not None and score.reach is not None
    ]
    measured.sort(key=lambda item: (-item[0], item[2]))
    start = 0
    for end in range(1, len(measured) + 1):
        first = measured[start]
        if end < len(measured) and first[0] - measured[end][0] <= math.hypot(first[1], measured[end][1]):
            continue
        mean = sum(value for value, _, _ in measured[start:end]) / (end - start)
        for _, _, index in measured[start:end]:
            smoothed[index] = mean
        start = end
    return smoothed
