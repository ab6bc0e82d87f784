"""Line charts: several curves over one axis, solid, dashed or dotted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.reporting.markup.element import Child, Element, element
from harness.reporting.markup.figure import COLOURS, Scale, data_table, figure, marker, number, swatches

__all__ = ["Line", "line_chart"]

Stroke = Literal["solid", "dashed", "dotted"]
WIDTH = 460
LEFT, RIGHT = 44, WIDTH - 12
TOP, BOTTOM = 22, 220
MARGIN = 0.04


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One curve."""

    label: str
    points: tuple[tuple[float, float], ...]
    """(x, y), by rising x."""
    group: int = 0
    """Whose colour and mark it takes; curves of one group belong together."""
    stroke: Stroke = "solid"
    best: float | None = None
    """The x of the point that gets a ring."""
    whiskers: tuple[tuple[float, float, float], ...] = ()
    """(x, low, high) of the points whose interval is known."""


def line_chart(
    title: str,
    lines: Sequence[Line],
    *,
    groups: Sequence[str],
    x_label: str,
    y_label: str,
    strokes: Sequence[tuple[Stroke, str]] = (),
    ring: str = "",
    x_digits: int = 0,
    description: str = "",
) -> Element:
    """Return the curves with a legend and their points as a table.

    Args:
        title: Heading.
        lines: The curves; those without points are skipped.
        groups: Names of the groups, in the order of their numbers.
        x_label: What the horizontal axis is.
        y_label: What the vertical axis is, with its unit.
        strokes: What dashed and dotted curves are, for the legend.
        ring: What the ring means, for the legend.
        x_digits: Of the horizontal values in the table.
        description: For screen readers; by default where every solid curve starts, peaks and ends.
    """
    lines = [line for line in lines if line.points]
    xs = [x for line in lines for x, _ in line.points] or [0.0, 1.0]
    ys = [y for line in lines for _, y in line.points] + [
        end for line in lines for _, *ends in line.whiskers for end in ends
    ] or [0.0, 1.0]
    margin = (max(ys) - min(ys)) * MARGIN or 1.0
    across = Scale(low=min(xs), high=max(xs), start=LEFT + 8, end=RIGHT - 8)
    up = Scale(low=min(ys) - margin, high=max(ys) + margin, start=BOTTOM, end=TOP)
    drawing: list[Child] = [_axes(across, up, x_label, y_label, whole=x_digits == 0)]
    # The lines at the back are drawn first.
    for line in sorted(lines, key=lambda own: own.stroke == "solid"):
        drawing.append(_curve(line, across, up))
    keys = [_key(stroke, caption) for stroke, caption in strokes]
    if ring:
        mark = element("circle", cx=12, cy=7, r=5, class_="ring")
        keys.append(element("li", element("svg", mark, width=24, height=14, aria_hidden="true"), f" {ring}"))
    rows = [(line.label, number(x, x_digits), y) for line in lines for x, y in line.points]
    table = data_table(("curve", x_label, y_label), rows)
    caption = description or "; ".join(_describe(line, x_digits) for line in lines if line.stroke == "solid")
    return figure(title, caption, WIDTH, BOTTOM + 40, drawing, table, swatches(groups, *keys))


def _axes(across: Scale, up: Scale, x_label: str, y_label: str, *, whole: bool) -> list[Element]:
    ticks = [tick for tick in across.ticks(8) if not whole or tick == round(tick)]
    return [
        *(
            element(
                "g",
                element("line", x1=LEFT, x2=RIGHT, y1=up(tick), y2=up(tick), class_="grid"),
                element("text", f"{tick:,g}", x=LEFT - 6, y=up(tick) + 4, class_="end soft"),
            )
            for tick in up.ticks()
        ),
        *(element("text", f"{tick:,g}", x=across(tick), y=BOTTOM + 16, class_="mid soft") for tick in ticks),
        element("line", x1=LEFT, x2=RIGHT, y1=BOTTOM, y2=BOTTOM, class_="axis"),
        element("text", x_label, x=RIGHT, y=BOTTOM + 34, class_="end soft"),
        element("text", y_label, x=0, y=12, class_="soft"),
    ]


def _curve(line: Line, across: Scale, up: Scale) -> Element:
    style = f"curve s{line.group % COLOURS}" + ("" if line.stroke == "solid" else f" {line.stroke}")
    path = "M" + "L".join(f"{across(x)},{up(y)}" for x, y in line.points)
    marks: list[Child] = [element("path", element("title", line.label), d=path, class_=style)]
    # Side by side, since several curves have points at the same x.
    aside = 3 * (line.group % COLOURS) - 3
    marks += [
        element(
            "path",
            d=f"M{round(across(x) + aside, 1)},{up(low)}V{up(high)}",
            class_=f"curve s{line.group % COLOURS}",
        )
        for x, low, high in line.whiskers
    ]
    if line.stroke == "solid":
        marks += [
            marker(line.group, across(x), up(y), 3, title=f"{line.label}, {number(x, 2)}: {number(y)}")
            for x, y in line.points
        ]
    marks += [
        element("circle", cx=across(x), cy=up(y), r=6, class_="ring")
        for x, y in line.points
        if x == line.best
    ]
    return element("g", marks)


def _key(stroke: Stroke, caption: str) -> Element:
    mark = element("path", d="M0,7H24", class_=f"curve s6 {stroke}")
    return element("li", element("svg", mark, width=24, height=14, aria_hidden="true"), f" {caption}")


def _describe(line: Line, digits: int) -> str:
    (first, start), (last, end) = line.points[0], line.points[-1]
    peak, top = max(line.points, key=lambda point: (point[1], -point[0]))
    return (
        f"{line.label}: {number(start)} at {number(first, digits)}, highest {number(top)} at "
        f"{number(peak, digits)}, {number(end)} at {number(last, digits)}"
    )
