"""Charts as pure functions from values to figures: SVG of our own, a legend, and the values as a table.

Values are in the unit that shall be shown (points, not fractions). Nothing depends on the order of a dictionary or
on chance, so that the same values give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from harness.reporting.markup.element import Child, Element, element
from harness.reporting.markup.figure import Scale, data_table, figure, marker, number, swatches

__all__ = [
    "Bar",
    "Dot",
    "Place",
    "Series",
    "bucket_bars",
    "calibration",
    "histogram",
    "interval_bars",
    "scatter",
    "strip_plot",
]

WIDTH = 760
ROW = 26
LABEL = 190


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One language of one system in a strip plot."""

    row: str
    """The system (or task)."""
    label: str
    """The language."""
    group: str
    """What colours it: the family of the language."""
    value: float
    marked: bool = False
    """Whether it gets a ring: English in the paper's figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One value with its interval."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    group: int = 0
    reason: str = ""
    """Why there is no value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The values of one system in every bucket; intervals where they are known."""

    label: str
    values: tuple[float | None, ...]
    lows: tuple[float | None, ...] = ()
    highs: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One point of a scatter plot."""

    label: str
    x: float
    y: float
    group: str = ""


def _limits(values: Sequence[float], low: float | None, high: float | None) -> tuple[float, float]:
    known = list(values) or [0.0, 1.0]
    bottom, top = min(known), max(known)
    margin = (top - bottom) * 0.04 or 1.0
    return (bottom - margin if low is None else low, top + margin if high is None else high)


def _horizontal(scale: Scale, top: float, bottom: float, unit: str) -> list[Element]:
    """Return vertical grid lines with their values under them, and the unit at the right end."""
    marks = [
        element(
            "g",
            element("line", x1=scale(tick), x2=scale(tick), y1=top, y2=bottom, class_="grid"),
            element("text", f"{tick:,g}", x=scale(tick), y=bottom + 16, class_="mid soft"),
        )
        for tick in scale.ticks()
    ]
    return [*marks, element("text", unit, x=scale.end, y=bottom + 34, class_="end soft")]


def _vertical(scale: Scale, left: float, right: float, unit: str) -> list[Element]:
    marks = [
        element(
            "g",
            element("line", x1=left, x2=right, y1=scale(tick), y2=scale(tick), class_="grid"),
            element("text", f"{tick:,g}", x=left - 6, y=scale(tick) + 4, class_="end soft"),
        )
        for tick in scale.ticks()
    ]
    return [*marks, element("text", unit, x=left, y=12, class_="mid soft")]


def strip_plot(
    title: str,
    dots: Sequence[Dot],
    *,
    rows: Sequence[str],
    groups: Sequence[str] | None = None,
    low: float | None = None,
    high: float | None = None,
    unit: str = "",
    marked: str = "English",
    description: str = "",
    means: Mapping[str, float] | None = None,
    row_notes: Mapping[str, str] | None = None,
) -> Element:
    """Return Figures 1 and 2 of XTREME-R: one line per system, one dot per language, coloured by family.

    Args:
        title: Heading.
        dots: In any order; those of other rows are skipped.
        rows: Systems in their order, from the top.
        groups: Families in the order of their colours, the same in all charts of a page; by default sorted.
        low: Left end of the axis.
        high: Right end.
        unit: Of the axis.
        marked: What the ring means.
        description: For screen readers; by default the mean of each row.
        means: By row: its mean where that is known; by default the mean of its dots.
        row_notes: By row: what stands under its name, such as how many languages are missing.
    """
    dots = [dot for dot in dots if dot.row in rows]
    families = list(groups) if groups is not None else sorted({dot.group for dot in dots})
    shown = {
        row: (means or {}).get(row, fmean(values))
        for row in rows
        if (values := [dot.value for dot in dots if dot.row == row])
    }
    bottom, top = _limits([*(dot.value for dot in dots), *shown.values()], low, high)
    scale = Scale(low=bottom, high=top, start=LABEL, end=WIDTH - 20)
    height = len(rows) * ROW + 60
    drawing: list[Child] = [_horizontal(scale, 8, height - 44, unit)]
    below = row_notes or {}
    for index, row in enumerate(rows):
        members = [dot for dot in dots if dot.row == row]
        drawing += _strip(
            row, below.get(row), members, shown.get(row), families, scale, 8 + (index + 0.5) * ROW
        )
    keys = [
        _key(element("circle", cx=7, cy=7, r=5, class_="ring"), marked),
        _key(element("line", x1=7, x2=7, y1=0, y2=14, class_="mean"), "mean"),
    ]
    table = data_table(
        ("system", "language", "group", "score"), [(dot.row, dot.label, dot.group, dot.value) for dot in dots]
    )
    said = [
        f"{row}: mean {number(mean)}{f' ({below[row]})' if below.get(row) else ''}"
        for row, mean in shown.items()
    ]
    alternative = description or "; ".join(said) or "No values"
    return figure(title, alternative, WIDTH, height, drawing, table, swatches(families, *keys))


def _strip(
    row: str,
    note: str | None,
    members: Sequence[Dot],
    mean: float | None,
    families: Sequence[str],
    scale: Scale,
    y: float,
) -> list[Child]:
    drawn: list[Child] = [element("text", row, x=LABEL - 10, y=y - 1 if note else y + 4, class_="end")]
    if note:
        drawn.append(element("text", note, x=LABEL - 10, y=y + 10, class_="end soft small"))
    if mean is None:
        return drawn
    x = scale(mean)
    drawn += [
        marker(families.index(dot.group), scale(dot.value), y, title=f"{dot.label}: {number(dot.value)}")
        for dot in members
    ]
    drawn.append(element("line", x1=x, x2=x, y1=y - 10, y2=y + 10, class_="mean"))
    drawn += [
        element("circle", cx=scale(dot.value), cy=y, r=7, class_="ring") for dot in members if dot.marked
    ]
    return drawn


def _key(mark: Element, label: str) -> Element:
    return element("li", element("svg", mark, width=14, height=14, aria_hidden="true"), f" {label}")


def interval_bars(
    title: str,
    bars: Sequence[Bar],
    *,
    low: float | None = 0.0,
    high: float | None = None,
    unit: str = "",
    description: str = "",
    digits: int = 1,
) -> Element:
    """Return horizontal bars from `low` (or 0), with whiskers from low to high where an interval is known."""
    ends = [end for bar in bars for end in (bar.value, bar.low, bar.high) if end is not None]
    bottom, top = _limits([*ends, 0.0] if low is None else ends, low, high)
    scale = Scale(low=bottom, high=top, start=LABEL, end=WIDTH - 60)
    height = len(bars) * ROW + 56
    origin = scale(min(max(0.0, bottom), top))
    drawing: list[Child] = [_horizontal(scale, 4, height - 44, unit)]
    for index, bar in enumerate(bars):
        y = 4 + index * ROW
        drawing.append(element("text", bar.label, x=LABEL - 10, y=y + 17, class_="end"))
        if bar.value is None:
            drawing.append(element("text", f"- {bar.reason}", x=LABEL + 4, y=y + 17, class_="soft"))
            continue
        x = scale(bar.value)
        drawing.append(
            element("rect", x=min(x, origin), y=y + 5, width=round(abs(x - origin), 1), height=ROW - 10,
                    class_=f"c{bar.group % 8}")
        )  # fmt: skip
        drawing.append(_whisker(scale, y + ROW / 2, bar.low, bar.high))
        drawing.append(element("text", number(bar.value, digits), x=WIDTH, y=y + 17, class_="end"))
    table = data_table(
        ("name", "score", "low", "high", "n"),
        [(bar.label, bar.value, bar.low, bar.high, bar.n) for bar in bars],
        digits,
    )
    alternative = description or "; ".join(f"{bar.label}: {number(bar.value, digits)}" for bar in bars)
    return figure(title, alternative, WIDTH, height, drawing, table)


def _whisker(scale: Scale, y: float, low: float | None, high: float | None) -> Element | None:
    if low is None or high is None:
        return None
    left, right = scale(low), scale(high)
    path = f"M{left},{y - 5}V{y + 5}M{left},{y}H{right}M{right},{y - 5}V{y + 5}"
    return element("path", d=path, class_="whisker")


def bucket_bars(
    title: str,
    buckets: Sequence[str],
    series: Sequence[Series],
    *,
    unit: str = "",
    counts: Sequence[int] = (),
    low: float | None = None,
    high: float | None = None,
    description: str = "",
) -> Element:
    """Return vertical bars, one a bucket and system: one system is a single analysis, two or more a pairwise one.

    Bars start at 0; values below 0 (differences) hang from it. `counts` are shown under the buckets.
    """
    ends = [end for one in series for end in (*one.values, *one.lows, *one.highs) if end is not None] or [1.0]
    bottom, top = _limits([*ends, 0.0], min(0.0, *ends) if low is None else low, high)
    width = max(360, 64 + len(buckets) * max(64, 26 * len(series) + 16))
    scale = Scale(low=bottom, high=top, start=200, end=20)
    slot = (width - 64) / max(1, len(buckets))
    bar = min(34.0, (slot - 14) / max(1, len(series)))
    drawing: list[Child] = [_vertical(scale, 48, width - 8, unit)]
    for index, name in enumerate(buckets):
        middle = 56 + (index + 0.5) * slot
        for order, one in enumerate(series):
            x = round(middle + (order - len(series) / 2) * bar, 1)
            drawing.append(_bucket_bar(one, index, order, x, bar, scale, name))
        drawing.append(element("text", name, x=round(middle, 1), y=218, class_="mid"))
        if counts:
            drawing.append(
                element("text", f"n={counts[index]:,}", x=round(middle, 1), y=234, class_="mid soft")
            )
    drawing.append(element("line", x1=48, x2=width - 8, y1=scale(0.0), y2=scale(0.0), class_="axis"))
    rows = [
        (name, *((counts[index],) if counts else ()), *(one.values[index] for one in series))
        for index, name in enumerate(buckets)
    ]
    heads = ("bucket", *(("n",) if counts else ()), *(one.label for one in series))
    alternative = description or "; ".join(
        f"{one.label}: "
        + ", ".join(f"{name} {number(value)}" for name, value in zip(buckets, one.values, strict=True))
        for one in series
    )
    legend = swatches([one.label for one in series])
    return figure(title, alternative, width, 240, drawing, data_table(heads, rows), legend)


def _bucket_bar(
    one: Series, index: int, order: int, x: float, width: float, scale: Scale, name: str
) -> Element | None:
    value = one.values[index]
    if value is None:
        return None
    y, origin = scale(value), scale(0.0)
    low = one.lows[index] if one.lows else None
    high = one.highs[index] if one.highs else None
    middle = round(x + width / 2, 1)
    whisker = (
        None
        if low is None or high is None
        else element("path", d=f"M{middle},{scale(low)}V{scale(high)}", class_="whisker")
    )
    return element(
        "g",
        element("title", f"{one.label}, {name}: {number(value)}"),
        element("rect", x=x, y=min(y, origin), width=round(width - 2, 1), height=round(abs(y - origin), 1),
                class_=f"c{order % 8}"),
        whisker,
    )  # fmt: skip


def scatter(
    title: str,
    points: Sequence[Place],
    *,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    pareto: bool = True,
    description: str = "",
) -> Element:
    """Return points with labels; the line joins those that no other beats with a smaller or equal x.

    Raises `ValueError` where `log_x` meets an x of 0 or less.
    """
    if log_x and any(point.x <= 0 for point in points):
        raise ValueError("A logarithmic axis takes values above 0 only.")
    xs = [point.x for point in points] or [1.0]
    left, right = (min(xs) / 1.5, max(xs) * 1.5) if log_x else _limits(xs, None, None)
    bottom, top = _limits([point.y for point in points], None, None)
    across = Scale(low=left, high=right, start=56, end=WIDTH - 110, is_log=log_x)
    up = Scale(low=bottom, high=top, start=300, end=24)
    groups = sorted({point.group for point in points})
    drawing: list[Child] = [_horizontal(across, 24, 300, x_label), _vertical(up, 56, WIDTH - 110, y_label)]
    front = pareto_front(points) if pareto else []
    if len(front) > 1:
        path = "M" + "L".join(f"{across(point.x)},{up(point.y)}" for point in front)
        drawing.append(element("path", d=path, class_="front"))
    for point in points:
        x, y = across(point.x), up(point.y)
        drawing.append(marker(groups.index(point.group), x, y, 5, title=f"{point.label}: {number(point.y)}"))
        drawing.append(element("text", point.label, x=x + 9, y=y + 4))
    rows = [(point.label, point.group, point.x, point.y) for point in points]
    alternative = description or f"{len(points)} points; best trade-offs: " + (
        ", ".join(point.label for point in front) or "none"
    )
    return figure(
        title,
        alternative,
        WIDTH,
        344,
        drawing,
        data_table(("name", "group", x_label, y_label), rows),
        swatches(groups),
    )


def pareto_front(points: Sequence[Place]) -> list[Place]:
    """Return the points that are above all others with a smaller or equal x, by x."""
    front: list[Place] = []
    for point in sorted(points, key=lambda point: (point.x, -point.y)):
        if not front or point.y > front[-1].y:
            front.append(point)
    return front


def histogram(
    title: str, edges: Sequence[float], counts: Sequence[int], *, x_label: str, y_label: str = "items"
) -> Element:
    """Return bars between edges, one more edge than counts; raises `ValueError` where their numbers do not fit."""
    if len(edges) != len(counts) + 1:
        raise ValueError(f"{len(counts)} counts need {len(counts) + 1} edges; found {len(edges)}.")
    across = Scale(low=edges[0], high=edges[-1], start=56, end=WIDTH - 20)
    up = Scale(low=0, high=max([*counts, 1]), start=200, end=20)
    bars = [
        element(
            "rect",
            element("title", f"{start:g} to {end:g}: {count:,}"),
            x=across(start),
            y=up(count),
            width=round(max(1.0, across(end) - across(start) - 1), 1),
            height=round(200 - up(count), 1),
            class_="c0",
        )
        for (start, end), count in zip(pairwise(edges), counts, strict=True)
    ]
    drawing = [_horizontal(across, 20, 200, x_label), _vertical(up, 56, WIDTH - 20, y_label), bars]
    rows = [
        (f"{start:g} to {end:g}", count) for (start, end), count in zip(pairwise(edges), counts, strict=True)
    ]
    alternative = f"{sum(counts):,} {y_label} from {edges[0]:g} to {edges[-1]:g}"
    return figure(title, alternative, WIDTH, 240, drawing, data_table((x_label, y_label), rows))


def calibration(title: str, bins: Sequence[tuple[float, float, int]]) -> Element:
    """Return accuracy against confidence, both in [0, 1]; `bins` are (mean confidence, accuracy, items).

    The description gives the expected calibration error: the mean over items of the distance from the diagonal.
    """
    across = Scale(low=0, high=1, start=56, end=336)
    up = Scale(low=0, high=1, start=300, end=20)
    total = sum(n for _, _, n in bins)
    error = sum(n * abs(accuracy - confidence) for confidence, accuracy, n in bins) / total if total else None
    drawing: list[Child] = [
        _horizontal(across, 20, 300, "confidence"),
        _vertical(up, 56, 336, "accuracy"),
        element("line", x1=56, x2=336, y1=300, y2=20, class_="diagonal"),
    ]
    largest = max((n for _, _, n in bins), default=1)
    drawing += [
        marker(0, across(confidence), up(accuracy), 3 + 6 * (n / largest) ** 0.5, title=f"n={n:,}")
        for confidence, accuracy, n in bins
        if n
    ]
    alternative = f"Expected calibration error {number(error, 3)} over {total:,} items"
    table = data_table(("confidence", "accuracy", "n"), [(number(c, 3), a, n) for c, a, n in bins], digits=3)
    return figure(title, alternative, 400, 344, drawing, table)
