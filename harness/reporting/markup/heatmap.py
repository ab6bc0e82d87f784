"""A table whose fields are coloured by their value: the number is always there, the colour only helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.reporting.markup.element import Element, element
from harness.reporting.markup.figure import number

__all__ = ["HeatRow", "heat_class", "heatmap"]

STEPS = 9


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


def heat_class(value: float | None, low: float, high: float, *, diverging: bool = False) -> str:
    """Return the class of a field: ``h0`` to ``h8`` from low to high, ``d0`` to ``d8`` around the middle."""
    if value is None:
        return "absent"
    part = 0.5 if high <= low else (value - low) / (high - low)
    step = min(STEPS - 1, max(0, int(part * STEPS)))
    return f"{'d' if diverging else 'h'}{step}"


def heatmap(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[HeatRow],
    *,
    corner: str = "",
    low: float | None = None,
    high: float | None = None,
    digits: int = 1,
    diverging: bool = False,
    column_titles: Mapping[str, str] | None = None,
) -> Element:
    """Return the table.

    Args:
        caption: What it shows.
        columns: Heads.
        rows: With as many values as there are columns; ``-`` means None, with its reason on hover.
        corner: What rows and columns are.
        low: The value of the first colour; the smallest by default. Around 0 where `diverging`.
        high: The value of the last colour.
        digits: Of the numbers.
        diverging: Whether 0 is the middle: differences.
        column_titles: Column -> what hovering over its head shows.
    """
    known = [value for row in rows for value in row.values if value is not None]
    reach = max((abs(value) for value in known), default=1.0)
    bottom = low if low is not None else (-reach if diverging else min(known, default=0.0))
    top = high if high is not None else (reach if diverging else max(known, default=1.0))
    body: list[Element] = []
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            body.append(
                element(
                    "tr", element("th", group, colspan=len(columns) + 1, scope="colgroup", class_="group")
                )
            )
        body.append(_row(row, columns, bottom, top, digits, diverging))
    titles = column_titles or {}
    heads = [element("th", name, scope="col", class_="n", title=titles.get(name)) for name in columns]
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", element("tr", element("th", corner, scope="col"), heads)),
            element("tbody", body),
            class_="heat",
        ),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=caption,
    )


def _row(
    row: HeatRow, columns: Sequence[str], low: float, high: float, digits: int, diverging: bool
) -> Element:
    fields = []
    for index, (value, _) in enumerate(zip(row.values, columns, strict=True)):
        reason = row.reasons[index] if value is None and index < len(row.reasons) else None
        style = heat_class(value, low, high, diverging=diverging)
        mark = row.marks[index] if index < len(row.marks) else ""
        text = number(value, digits) + mark
        fields.append(element("td", text, class_=f"n {style}", title=reason or None))
    label = element("a", row.label, href=row.href) if row.href else row.label
    return element("tr", element("th", label, scope="row", title=row.title), fields)
