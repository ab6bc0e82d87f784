"""A table whose fields are coloured by their value: the number is always there, the colour only helps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.reporting.markup.element import Element, element
from harness.reporting.markup.figure import number

__all__ = ["HeatRow", "Ramp", "heat_class", "heat_legend", "heatmap", "levels"]

STEPS = 9
Ramp = Literal["score", "error", "difference", "share"]
"""What a colour means: the more, the better; the more, the worse; around 0; neither good nor bad."""
CLASSES: Mapping[Ramp, str] = {"score": "h", "error": "e", "difference": "d", "share": "g"}
SCALES: Mapping[Ramp, tuple[float, float]] = {
    "score": (0.0, 100.0),
    "error": (0.0, 100.0),
    "difference": (-20.0, 20.0),
    "share": (0.0, 100.0),
}
"""In points. They are the same in every table, so that a colour has one meaning; what is beyond has the last colour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    """One row of a heatmap."""

    label: str
    values: tuple[float | None, ...]
    group: str = ""
    """Rows of one group stand under its name; give rows in the order of their groups."""
    href: str | None = None
    title: str | None = None
    """Shown on hover and focus of the label."""
    reasons: tuple[str, ...] = ()
    """Why a value is missing, by column; empty where it is not."""
    marks: tuple[str, ...] = ()
    """What follows a value, by column."""
    reaches: tuple[float | None, ...] = ()
    """Half of the 95 % interval of a value, the longer side of one that is not symmetric, by column."""


def heat_class(value: float | None, low: float, high: float, *, ramp: Ramp = "score") -> str:
    """Return the class of a field: ``h0`` to ``h8`` from low to high, with another letter for each ramp."""
    if value is None:
        return "absent"
    part = 0.5 if high <= low else (value - low) / (high - low)
    step = min(STEPS - 1, max(0, int(part * STEPS)))
    return f"{CLASSES[ramp]}{step}"


def levels(values: Sequence[float | None], reaches: Sequence[float | None]) -> list[float | None]:
    """Return what fields are coloured by, so that no colour differs by noise alone.

    From the best value down, fields that do not differ measurably from the first of their band share the band's mean;
    the next one begins a new band. Values without an interval keep their own level.

    Args:
        values: Of the fields that are compared.
        reaches: Half of the 95 % interval of each; None where it is not known.
    """
    found = list(values)
    known = [
        (value, reach, index)
        for index, (value, reach) in enumerate(zip(values, reaches, strict=True))
        if value is not None and reach is not None
    ]
    known.sort(key=lambda item: (-item[0], item[2]))
    start = 0
    for end in range(1, len(known) + 1):
        first = known[start]
        if end < len(known) and first[0] - known[end][0] <= math.hypot(first[1], known[end][1]):
            continue
        mean = sum(value for value, _, _ in known[start:end]) / (end - start)
        for _, _, index in known[start:end]:
            found[index] = mean
        start = end
    return found


def heat_legend(low: str, high: str, *, ramp: Ramp = "score") -> Element:
    """Return the colours of a ramp between the names of its ends."""
    steps = [element("span", class_=f"key {CLASSES[ramp]}{step}") for step in range(STEPS)]
    return element(
        "p",
        f"{low} ",
        element("span", steps, class_="keys", aria_hidden="true"),
        f" {high}",
        class_="note ramp",
    )


def heatmap(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[HeatRow],
    *,
    corner: str = "",
    digits: int = 1,
    ramp: Ramp = "score",
    column_titles: Mapping[str, str] | None = None,
) -> Element:
    """Return the table with its legend.

    Args:
        caption: What it shows.
        columns: Heads.
        rows: With as many values as there are columns, in points; ``-`` means None, with its reason on hover.
        corner: What rows and columns are.
        digits: Of the numbers.
        ramp: What the colours mean; it fixes their scale.
        column_titles: Column -> what hovering over its head shows.
    """
    low, high = SCALES[ramp]
    if any(len(row.values) != len(columns) for row in rows):
        raise ValueError(f"A heatmap of {len(columns)} columns needs as many values in each row.")
    body: list[Element] = []
    group = ""
    for row, own in zip(rows, _levels(rows, len(columns), ramp), strict=True):
        if row.group != group:
            group = row.group
            body.append(
                element(
                    "tr", element("th", group, colspan=len(columns) + 1, scope="colgroup", class_="group")
                )
            )
        body.append(_row(row, [heat_class(level, low, high, ramp=ramp) for level in own], digits))
    titles = column_titles or {}
    heads = [element("th", name, scope="col", class_="n", title=titles.get(name)) for name in columns]
    ends = (
        (f"{low:+g} and less", f"{high:+g} and more") if ramp == "difference" else (f"{low:g}", f"{high:g}")
    )
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", element("th", corner, scope="col"), heads)),
        element("tbody", body),
        class_="heat",
    )
    return element(
        "div",
        element("div", table, class_="scroll", tabindex=0, role="region", aria_label=caption),
        heat_legend(*ends, ramp=ramp),
    )


def _levels(rows: Sequence[HeatRow], count: int, ramp: Ramp) -> list[list[float | None]]:
    """Return what the fields of a table are coloured by; a difference within its noise is none."""
    values = [value for row in rows for value in row.values]
    reaches = [reach for row in rows for reach in (row.reaches or (None,) * count)]
    if ramp == "difference":
        found = [
            0.0 if value is not None and reach is not None and abs(value) <= reach else value
            for value, reach in zip(values, reaches, strict=True)
        ]
    else:
        found = levels(values, reaches)
    return (
        [found[start : start + count] for start in range(0, len(found), count)]
        if count
        else [[] for _ in rows]
    )


def _row(row: HeatRow, styles: Sequence[str], digits: int) -> Element:
    fields = []
    for index, (value, style) in enumerate(zip(row.values, styles, strict=True)):
        reason = row.reasons[index] if value is None and index < len(row.reasons) else None
        mark = row.marks[index] if index < len(row.marks) else ""
        text = number(value, digits) + mark
        fields.append(element("td", text, class_=f"n {style}", title=reason or None))
    label = element("a", row.label, href=row.href) if row.href else row.label
    return element("tr", element("th", label, scope="row", title=row.title), fields)
