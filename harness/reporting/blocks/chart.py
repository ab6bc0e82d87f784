"""Charts: bars with intervals, and curves. The templates draw them, in pages and in figures.

Values are in the unit that shall be shown (points, not fractions).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from harness.reporting.blocks.task_chart import Key, TaskChart

MARGIN = 0.04
"""Share of the span of values that an axis leaves free at each end."""


def number(value: float | None, digits: int = 1) -> str:
    """Return a number as tables show it; ``-`` for None."""
    if value is None:
        return "-"
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Values in [low, high] onto pixels in [start, end]."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the pixel of a value, to a tenth; values outside go to the nearer end."""
        span = self.high - self.low
        fraction = 0.5 if not span else min(1.0, max(0.0, (value - self.low) / span))
        return round(self.start + fraction * (self.end - self.start), 1)

    def ticks(self, count: int = 5) -> list[float]:
        """Return round values within the scale: multiples of 1, 2 or 5."""
        width = self.high - self.low
        if width <= 0:
            return [self.low]
        rough = width / count
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(index * step, 10) for index in range(first, last + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One row: a value with its interval."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    group: int = 0
    """Whose colour it has."""
    note: str = ""
    """Printed under the label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    """Horizontal bars from 0 with whiskers."""

    kind: ClassVar[str] = "bars"
    title: str
    bars: tuple[Bar, ...]
    unit: str = ""
    low: float | None = 0.0
    high: float | None = None
    digits: int = 1
    width: int = 760
    label: int = 190
    groups: tuple[str, ...] = ()
    """Names of its colours, for the legend."""
    line: float | None = None
    """Chance: a dotted line over all rows."""

    @property
    def has_values(self) -> bool:
        """Whether there is anything to draw."""
        return any(bar.value is not None for bar in self.bars)

    @property
    def scale(self) -> Scale:
        """The axis; a given end is kept, the others leave a margin."""
        values = [end for bar in self.bars for end in (bar.value, bar.low, bar.high) if end is not None]
        low, high = _limits([*values, 0.0], self.low, self.high)
        return Scale(low=low, high=high, start=self.label, end=self.width - 60)

    @property
    def keys(self) -> list[Key]:
        """The entries of its legend."""
        names = self.groups if len(self.groups) > 1 or self.line is not None else ()
        keys = [("bar", at, name) for at, name in enumerate(names)]
        return keys if self.line is None else [*keys, ("line", 0, "chance")]

    @property
    def description(self) -> str:
        """The values in words, for screen readers."""
        return "; ".join(
            f"{bar.label}: {number(bar.value, self.digits)}{f' ({bar.note})' if bar.note else ''}"
            for bar in self.bars
        )

    @property
    def data(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Heads and rows of the values as a table."""
        return ("name", "score", "low", "high", "n"), [
            (
                bar.label,
                *(number(value, self.digits) for value in (bar.value, bar.low, bar.high)),
                "-" if bar.n is None else f"{bar.n:,}",
            )
            for bar in self.bars
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One curve."""

    label: str
    points: tuple[tuple[float, float], ...]
    """(x, y), by rising x."""
    group: int = 0
    """Whose colour and mark it takes; curves of one group belong together."""
    stroke: Literal["solid", "dashed", "dotted"] = "solid"
    best: float | None = None
    """The x of the point that gets a ring."""
    whiskers: tuple[tuple[float, float, float], ...] = ()
    """(x, low, high) of the points whose interval is known."""
    bands: tuple[tuple[float, float, float], ...] = ()
    """(x, low, high) of grey bars behind the curve."""
    is_guide: bool = False
    """Whether it only guides the eye, and is not in the table; a solid one has its label at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveChart:
    """Several curves over one axis, solid, dashed or dotted."""

    kind: ClassVar[str] = "curves"
    title: str
    lines: tuple[Line, ...]
    """Those without points are not drawn."""
    groups: tuple[str, ...] = ()
    x_label: str
    y_label: str
    strokes: tuple[tuple[str, str], ...] = ()
    """Names of dashed and dotted curves, for the legend."""
    ring: str = ""
    """Meaning of the ring, for the legend."""
    x_digits: int = 0
    x_names: tuple[str, ...] = ()
    """Names of the places 0, 1, ... on the horizontal axis, where these are no numbers."""
    y_digits: int = 1
    width: int = 460
    summary: str = ""
    """For screen readers; by default where every solid curve starts, peaks and ends."""

    @property
    def has_values(self) -> bool:
        """Whether there is anything to draw."""
        return bool(self.drawn)

    @property
    def drawn(self) -> list[Line]:
        """The curves that have points, those at the back first."""
        return sorted((line for line in self.lines if line.points), key=lambda line: line.stroke == "solid")

    @property
    def across(self) -> Scale:
        """The horizontal axis."""
        xs = [x for line in self.drawn for x, _ in line.points] or [0.0, 1.0]
        return Scale(low=min(xs), high=max(xs), start=52, end=self.width - 20)

    @property
    def up(self) -> Scale:
        """The vertical axis."""
        ys = [y for line in self.drawn for _, y in line.points]
        ys += [end for line in self.drawn for _, *ends in (*line.whiskers, *line.bands) for end in ends]
        low, high = _limits(ys, None, None)
        return Scale(low=low, high=high, start=220, end=22)

    @property
    def keys(self) -> list[Key]:
        """The entries of its legend."""
        names = self.groups if len(self.groups) > 1 or self.ring else ()
        keys = [("dot", at, name) for at, name in enumerate(names)]
        keys += [(stroke, 6, meaning) for stroke, meaning in self.strokes]
        return [*keys, ("ring", 0, self.ring)] if self.ring else keys

    @property
    def x_ticks(self) -> list[float]:
        """Where the horizontal axis has numbers."""
        if self.x_names:
            return [float(index) for index in range(len(self.x_names))]
        return [tick for tick in self.across.ticks(8) if self.x_digits or tick == round(tick)]

    def x_text(self, value: float) -> str:
        """Return a place of the horizontal axis as it is written."""
        return self.x_names[round(value)] if self.x_names else f"{value:,g}"

    @property
    def description(self) -> str:
        """The curves in words, for screen readers."""
        return self.summary or "; ".join(
            _describe(line, self.x_digits) for line in self.lines if line.points and line.stroke == "solid"
        )

    @property
    def data(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Heads and rows of the values as a table: one row per x, one column per curve."""
        lines = [line for line in self.lines if line.points and not line.is_guide]
        drawn = [dict(line.points) for line in lines]
        across = sorted({x for points in drawn for x in points})
        return (self.x_label, *(line.label for line in lines)), [
            (
                self.x_names[round(x)] if self.x_names else number(x, self.x_digits),
                *(number(points.get(x), self.y_digits) for points in drawn),
            )
            for x in across
        ]


Chart = BarChart | CurveChart | TaskChart


def _limits(values: Sequence[float], low: float | None, high: float | None) -> tuple[float, float]:
    bottom, top = min(values, default=0.0), max(values, default=1.0)
    margin = (top - bottom) * MARGIN or 1.0
    return (bottom - margin if low is None else low, top + margin if high is None else high)


def _describe(line: Line, digits: int) -> str:
    (first, start), (last, end) = line.points[0], line.points[-1]
    peak, top = max(line.points, key=lambda point: (point[1], -point[0]))
    return (
        f"{line.label}: {number(start)} at {number(first, digits)}, highest {number(top)} at "
        f"{number(peak, digits)}, {number(end)} at {number(last, digits)}"
    )
