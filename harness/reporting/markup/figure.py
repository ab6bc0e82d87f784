"""What all charts share: linear and logarithmic scales, number texts, the figure around a drawing, its data table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.reporting.markup.element import Child, Element, element

__all__ = ["COLOURS", "Scale", "data_table", "figure", "marker", "number", "swatches"]

NOTHING = "There are no values"
SHAPES = 4
COLOURS = 8
"""Okabe and Ito's palette, with darker tones on white; more groups than that take another shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Values in [low, high] onto pixels in [start, end]."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """Return the pixel of a value, to a tenth; values outside go to the nearer end."""
        low, high, at = (
            (math.log10(self.low), math.log10(self.high), math.log10(max(value, self.low)))
            if self.is_log
            else (self.low, self.high, value)
        )
        part = 0.5 if high == low else min(1.0, max(0.0, (at - low) / (high - low)))
        return round(self.start + part * (self.end - self.start), 1)

    def ticks(self, count: int = 5) -> list[float]:
        """Return round values within the scale: multiples of 1, 2 or 5, or powers of ten."""
        if self.is_log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            return [10.0**power for power in range(first, last + 1)]
        width = self.high - self.low
        if width <= 0:
            return [self.low]
        rough = width / count
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(index * step, 10) for index in range(first, last + 1)]


def number(value: float | None, digits: int = 1) -> str:
    """Return a number as tables show it; ``-`` for None."""
    if value is None:
        return "-"
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text


def marker(group: int, x: float, y: float, size: float = 4.5, *, title: str | None = None) -> Element:
    """Return the mark of a group at a place: colour by its number modulo 8, shape by the rest."""
    style = f"dot c{group % COLOURS}"
    shape = (group // COLOURS) % SHAPES
    label = element("title", title) if title else None
    if shape == 0:
        return element("circle", label, cx=x, cy=y, r=size, class_=style)
    if shape == 1:
        return element("rect", label, x=x - size, y=y - size, width=2 * size, height=2 * size, class_=style)
    reach = size * 1.3
    corners = [(x, y - reach), (x + reach, y + reach * 0.8), (x - reach, y + reach * 0.8)]
    if shape == 3:
        corners = [(x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y)]
    points = " ".join(f"{left:.1f},{top:.1f}" for left, top in corners)
    return element("polygon", label, points=points, class_=style)


def swatches(groups: Sequence[str], *more: Element) -> Element | None:
    """Return the legend of groups in their order, or None where there is one group only."""
    if len(groups) < 2 and not more:
        return None
    items = [
        element(
            "li",
            element("svg", marker(index, 7, 7), width=14, height=14, aria_hidden="true"),
            f" {group}",
        )
        for index, group in enumerate(groups)
    ]
    return element("ul", items, more, class_="legend")


def data_table(
    heads: Sequence[str], rows: Sequence[Sequence[str | int | float | None]], digits: int = 1
) -> Element:
    """Return the values of a chart as a folded table; the first column heads the rows."""
    body = [
        element(
            "tr",
            element("th", _text(row[0], digits), scope="row"),
            [
                element("td", _text(field, digits), class_=None if isinstance(field, str) else "n")
                for field in row[1:]
            ],
        )
        for row in rows
    ]
    return element(
        "details",
        element("summary", "Data of this chart"),
        element(
            "div",
            element(
                "table",
                element("thead", element("tr", [element("th", head, scope="col") for head in heads])),
                element("tbody", body),
            ),
            class_="scroll",
            tabindex=0,
            role="group",
            aria_label="Data of this chart",
        ),
        class_="data",
    )


def _text(field: str | int | float | None, digits: int) -> str:
    if isinstance(field, str):
        return field
    return f"{field:,}" if isinstance(field, int) else number(field, digits)


def figure(
    title: str,
    description: str,
    width: float,
    height: float,
    drawing: Child,
    table: Element,
    legend: Element | None = None,
) -> Element:
    """Return a chart: heading, legend, an image that is read out as title and description, and its data."""
    return element(
        "figure",
        element("figcaption", title),
        legend,
        element(
            "div",
            element(
                "svg",
                element("title", title),
                element("desc", description or NOTHING),
                drawing,
                role="img",
                aria_label=f"{title}. {description or NOTHING}",
                viewBox=f"0 0 {width:g} {height:g}",
                width=f"{width:g}",
                height=f"{height:g}",
            ),
            class_="scroll",
            tabindex=0,
            role="group",
            aria_label=title,
        ),
        table,
    )
