"""The parts that all sections of the report are built of: sections, tables with heads, folds, notes, anchors."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from harness.reporting.markup.element import Child, Element, element

__all__ = ["anchor", "fold", "notes", "section", "table"]


def anchor(prefix: str, *names: str) -> str:
    """Return the id of a place in the page: letters, digits and hyphens, different for different names."""
    parts = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
        parts.append(plain if plain == name else f"{plain}-{name.encode('utf-8', 'replace').hex()[:24]}")
    return "-".join([prefix, *parts])


def section(identifier: str, title: str, *children: Child) -> Element:
    """Return a part of the page with its heading and anchor."""
    return element(
        "section",
        element("h2", title, id=f"{identifier}-title"),
        *children,
        id=identifier,
        aria_labelledby=f"{identifier}-title",
    )


def fold(title: Child, *children: Child, is_open: bool = False, identifier: str | None = None) -> Element:
    """Return what can be opened; its anchor is inside, since browsers open a fold for what it holds."""
    body = element("div", *children, id=identifier, class_="body")
    return element("details", element("summary", title), body, open=is_open, class_="fold")


def notes(texts: Iterable[str]) -> Element | None:
    """Return a list of sentences, or None where there are none."""
    items = [element("li", text) for text in dict.fromkeys(texts)]
    return element("ul", items, class_="note") if items else None


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[Child]],
    *,
    texts: Collection[int] = (),
    hidden_caption: bool = False,
) -> Element:
    """Return a table that scrolls where it is too wide; the first column heads the rows.

    Args:
        caption: What it shows.
        heads: Of the columns.
        rows: As many fields as heads.
        texts: Indices of the columns after the first that hold words, not numbers.
        hidden_caption: Whether only a screen reader says the caption, since a heading is right above.
    """
    body = [
        element(
            "tr",
            element("th", row[0], scope="row"),
            [
                element("td", field, class_=None if index in texts else "n")
                for index, field in enumerate(row[1:], start=1)
            ],
        )
        for row in rows
    ]
    head = [
        element("th", name, scope="col", class_=None if index in texts or index == 0 else "n")
        for index, name in enumerate(heads)
    ]
    return element(
        "div",
        element(
            "table",
            element("caption", caption, class_="unseen" if hidden_caption else None),
            element("thead", element("tr", head)),
            element("tbody", body),
        ),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=caption,
    )
