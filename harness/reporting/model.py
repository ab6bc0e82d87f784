"""What every report is made of: sections of tables, charts, notes and folds, which each format renders in its way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from harness.reporting.chart import Chart

__all__ = [
    "Block",
    "Charts",
    "Field",
    "Fold",
    "ItemText",
    "Note",
    "Notes",
    "Report",
    "Section",
    "Table",
    "TableRow",
    "anchor",
    "as_field",
    "rows_of",
]

BLANK = "-"
"""Printed where there is no value."""
Ramp = Literal["score", "error", "difference", "share"]
"""What a colour means: the more, the better; the more, the worse; around 0; neither good nor bad."""


@dataclass(frozen=True, slots=True)
class ItemText:
    """A text of a model or data set: it has its own direction and language, and is folded where it is long."""

    text: str
    language: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a table, for what a plain text cannot say."""

    text: str = ""
    small: str = ""
    """How sure a number is, printed after it."""
    short: str = ""
    """Printed instead of the text where a terminal has little space."""
    title: str = ""
    """Shown on hover."""
    shade: str = ""
    """The class of its colour, made by `harness.reporting.heat.heat_class`."""
    href: str = ""
    """The anchor that it leads to, with ``#``."""
    style: Literal["", "code", "good", "bad"] = ""
    parts: tuple[str | ItemText, ...] = ()
    """What it holds instead of one text."""
    listed: bool = False
    """Whether the parts are the entries of a list."""

    def __str__(self) -> str:
        """Return its words on one line."""
        if self.parts:
            return " ".join(part if isinstance(part, str) else part.text for part in self.parts)
        return f"{self.text} {self.small}".rstrip() if self.small else self.text


def as_field(content: str | Field) -> Field:
    """Return a field of a table as a `Field`."""
    return content if isinstance(content, Field) else Field(text=content)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row; a row without fields is the heading of the rows after it."""

    label: str | Field
    fields: tuple[str | Field, ...] = ()
    depth: int = 0
    """How far its label is indented."""
    style: Literal["", "head", "bold", "dim"] = ""
    """A ``head`` is over the rows that follow and may sum them up."""
    optional: bool = False
    """Whether a part of a divided table skips it where it has nothing to show there."""
    ends: bool = False
    """Whether it is the last one of its group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table whose first column names the rows."""

    kind: ClassVar[str] = "table"
    title: str
    corner: str = ""
    heads: tuple[str, ...] = ()
    """Of the columns after the first, with line ends where they may break."""
    rows: tuple[TableRow, ...] = ()
    notes: tuple[str, ...] = ()
    words: frozenset[int] = frozenset()
    """Which columns after the first (0 is the second one) hold words rather than numbers."""
    folding: bool = False
    """Whether a terminal may fold the labels and words; otherwise they are cut."""
    label_width: int | None = None
    """The most columns of a terminal that the labels take."""
    divided: bool = False
    """Whether a terminal that is too narrow shows it in several parts."""
    terse: bool = False
    """Whether a terminal shows no intervals in it, and may fold its heads."""
    untitled: bool = False
    """Whether the heading before it says what it is."""
    style: str = ""
    """Its class in a page."""
    anchor: str = ""
    """Its place in a page."""
    head_titles: tuple[str, ...] = ()
    """By column: shown on hover of its head."""
    groups: tuple[tuple[str, int], ...] = ()
    """Names over several columns each, with how many, where a page has two rows of heads."""
    ramp: Ramp | None = None
    """The colours of its fields, which a page explains under it."""
    ramp_low: str = ""
    """What the lowest colour is, where it is not the ramp's own end."""
    narrow: Table | None = None
    """Shown instead where a terminal is too narrow for it."""

    @property
    def plain_heads(self) -> list[str]:
        """The heads on one line each; a word that is broken with a hyphen is joined."""
        return [head.replace("-\n", "").replace("\n", " ") for head in self.heads]


def rows_of(rows: Iterable[Sequence[str | Field]]) -> tuple[TableRow, ...]:
    """Return rows of a table from sequences, whose first field is the label."""
    return tuple(TableRow(label=label, fields=tuple(fields)) for label, *fields in rows)


@dataclass(frozen=True, slots=True)
class Note:
    """One paragraph; an empty one is a blank line of a terminal."""

    kind: ClassVar[str] = "note"
    text: str
    style: Literal["", "note", "soft", "heading", "subheading", "warning"] = ""


@dataclass(frozen=True, slots=True)
class Notes:
    """A list of sentences; equal ones are shown once."""

    kind: ClassVar[str] = "notes"
    texts: Sequence[str]
    style: Literal["note", "findings"] = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Charts:
    """Charts side by side, and the table that formats without pictures show instead."""

    kind: ClassVar[str] = "charts"
    charts: tuple[Chart, ...]
    table: Table | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Blocks that a page shows when its title is opened."""

    kind: ClassVar[str] = "fold"
    title: str
    blocks: Sequence[Block]
    soft: str = ""
    """What follows the title in a few words."""
    is_open: bool = False
    anchor: str | None = None
    heading: bool = False


Block = Table | Note | Notes | Charts | Fold


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a report with its heading and anchor."""

    name: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole report."""

    title: str
    subtitle: str = ""
    sections: Sequence[Section]


def anchor(prefix: str, *names: str) -> str:
    """Return the id of a place in a page: letters, digits and hyphens, different for different names."""
    parts = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
        parts.append(plain if plain == name else f"{plain}-{name.encode('utf-8', 'replace').hex()[:24]}")
    return "-".join([prefix, *parts])
