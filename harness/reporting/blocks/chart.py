"""Charts: bars, curves, tasks, and differences around 0. The templates draw them, in pages and in figures.

Values are in the unit that shall be shown (points, not fractions).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

Key = tuple[str, int, str]
"""An entry of a legend: the sign that the template ``charts.html.j2`` draws, its variant, and what it means."""
Data = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Heads and rows of the values of a chart as a table."""
MARGIN = 0.04
"""Share of the span of values that an axis leaves free at each end."""
MarkKind = Literal["language", "source", "run", "baseline", "published"]
SYSTEMS: Mapping[MarkKind, str] = {"run": "", "baseline": "baseline ", "published": "published "}
"""The kinds of systems, and what a legend has before their names."""
STRIP = 21
"""Characters of a strip; 0 is in the middle."""
LEAST_REACH = 1.0
"""Points to each side of 0 that an axis has at least."""
DECIDES = "p after Holm decides (p ≤ .05); an interval is of one difference alone, and may exclude 0 where p does not."
"""Advice for a reader where the interval and the test of one difference do not agree."""


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
class ChartRow:
    """A value with its interval."""

    label: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar(ChartRow):
    """One bar."""

    group: int = 0
    """Whose colour it has."""
    note: str = ""
    """Printed under the label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    """Horizontal bars from 0 with whiskers."""

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
    def data(self) -> Data:
        """Heads and rows of the values as a table."""
        return ("name", "score", "low", "high", "n"), [
            (
                bar.label,
                *(number(value, self.digits) for value in (bar.value, bar.low, bar.high)),
                number(bar.n, 0),
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
    def data(self) -> Data:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One score of a row besides its mean, in points."""

    kind: MarkKind
    label: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow(ChartRow):
    """One task with its mean."""

    words: str = ""
    """Its description, in a few words."""
    text: str = ""
    """The mean as it is printed, with its marks."""
    small: str = ""
    """How sure the mean is."""
    chance: float | None = None
    marks: Sequence[Mark] = ()
    weakest: Sequence[str] = ()
    """Names of the languages that have the lowest score."""
    lowest: float | None = None
    """The lowest score, in points; None where the task has few languages."""

    @property
    def weakest_text(self) -> str:
        """The label of the lowest dot: ``Swahili``, or ``Swahili +2`` where two more have the same score."""
        name, *ties = self.weakest
        return f"{name} +{len(ties)}" if ties else name

    @property
    def description(self) -> str:
        """The row in words, for screen readers."""
        phrases = [f"mean {self.text} {self.small}".strip()] if self.text else []
        if self.lowest is not None:
            phrases.append(f"lowest {', '.join(self.weakest)} {self.lowest:.1f}")
        phrases += [f"{mark.label} {mark.value:.1f}" for mark in self.marks if mark.kind != "language"]
        if self.chance is not None:
            phrases.append(f"chance {self.chance:.1f}")
        return f"{self.label}: {', '.join(phrases)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChart:
    """A mean with its interval, a dot per language, and what it is compared with, for each task."""

    title: str
    rows: Sequence[TaskRow]
    ticks: ClassVar[Sequence[int]] = (0, 25, 50, 75, 100)

    @property
    def description(self) -> str:
        """The rows in words, for screen readers."""
        return "; ".join(row.description for row in self.rows)

    @property
    def keys(self) -> list[Key]:
        """The marks that the chart has, what each of them is, and its variant: a system has a mark of its own."""
        scored = any(row.text for row in self.rows)
        keys = [("mean", 0, "mean, 95 % interval"), ("language", 0, "a language")] if scored else []
        if sources := self._labels("source"):
            keys.append(("source", 0, ", ".join(sources)))
        for kind, before in SYSTEMS.items():
            keys += [(kind, at, f"{before}{label}") for at, label in enumerate(self._labels(kind))]
        if any(row.chance is not None for row in self.rows):
            keys.append(("chance", 0, "chance"))
        return keys

    def variant(self, mark: Mark) -> int:
        """Return the place of a mark's system among those of its kind, which decides its shape."""
        return 0 if mark.kind in {"language", "source"} else self._labels(mark.kind).index(mark.label)

    def _labels(self, kind: MarkKind) -> list[str]:
        return list(dict.fromkeys(mark.label for row in self.rows for mark in row.marks if mark.kind == kind))

    @property
    def data(self) -> Data:
        """Heads and rows of the values as a table: one row per task."""
        heads = ("task", "mean", "low", "high", "chance", "languages", "compared with")
        return heads, [
            (
                row.label,
                row.text,
                *("-" if value is None else f"{value:.1f}" for value in (row.low, row.high, row.chance)),
                _listed(row, {"source", "language"}),
                _listed(row, {"run", "baseline", "published"}),
            )
            for row in self.rows
        ]


def _listed(row: TaskRow, kinds: set[MarkKind]) -> str:
    labels = (
        f"{'published ' if mark.kind == 'published' else ''}{mark.label} {mark.value:.1f}"
        for mark in row.marks
        if mark.kind in kinds
    )
    return ", ".join(labels) or "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestRow(ChartRow):
    """One difference, in points."""

    depth: int = 0
    """How far its label is indented."""
    significant: bool | None = None
    """Whether it is called a difference; None leaves it to the interval."""

    @property
    def text(self) -> str:
        """The difference with its sign."""
        return "-" if self.value is None else _signed(self.value)

    @property
    def ends(self) -> str:
        """``-16.3 to -3.3``; empty without an interval."""
        return "" if self.low is None or self.high is None else f"{_signed(self.low)} to {_signed(self.high)}"

    @property
    def written(self) -> str:
        """The difference with its interval."""
        return f"{self.text} ({self.ends})" if self.ends else self.text

    @property
    def is_disputed(self) -> bool:
        """Whether the interval is beyond 0, but the test decides that there is no difference."""
        return self.significant is False and replace(self, significant=None).direction != "even"

    @property
    def direction(self) -> Literal["up", "down", "even"]:
        """Which way the difference goes; ``even`` where it is none."""
        is_significant = self.significant
        if is_significant is None:
            is_significant = self.low is not None and self.high is not None and not self.low <= 0 <= self.high
        return "even" if self.value is None or not is_significant else "up" if self.value > 0 else "down"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestChart:
    """Differences around 0, one row each; those that are significant have a colour. Each row has its values as text."""

    title: str
    rows: tuple[ForestRow, ...]
    left: str = "lower"
    """Meaning of a difference below 0."""
    right: str = "higher"
    keys: ClassVar[Sequence[Key]] = ()

    @property
    def description(self) -> str:
        """The rows in words, for screen readers."""
        return "; ".join(f"{row.label}: {row.written}" for row in self.rows)

    @property
    def note(self) -> str:
        """Note on the test that decides, where the interval and the test of a row do not agree; else empty."""
        return f"Grey: no difference. {DECIDES}" if any(row.is_disputed for row in self.rows) else ""

    @property
    def reach(self) -> float:
        """How far the axis goes to each side of 0, in points."""
        return _reach(self.rows)

    @property
    def scale(self) -> Scale:
        """The axis, as shares of its width."""
        return Scale(low=-self.reach, high=self.reach, start=0, end=100)


def _reach(rows: Sequence[ForestRow]) -> float:
    ends = [abs(end) for row in rows for end in (row.value, row.low, row.high) if end is not None]
    return max([LEAST_REACH, *ends]) * 1.05


def strip(row: ForestRow, rows: Sequence[ForestRow]) -> str:
    """Return a difference as characters, ``   --o--  |    ``, on the axis of all rows; empty without a value."""
    if row.value is None:
        return ""
    reach, middle = _reach(rows), STRIP // 2

    def place(value: float) -> int:
        return min(STRIP - 1, max(0, middle + round(value / reach * middle)))

    ends = () if row.low is None or row.high is None else range(place(row.low), place(row.high) + 1)
    characters = dict.fromkeys(ends, "-") | {middle: "|"} | {place(row.value): "o"}
    return "".join(characters.get(at, " ") for at in range(STRIP))


Chart = BarChart | CurveChart | TaskChart | ForestChart


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


def _signed(points: float) -> str:
    return f"{round(points, 1) + 0.0:+.1f}"
