"""Parts of every report: sections of tables, charts, notes and folds, which each format renders in its way."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from harness.reporting.blocks.chart import Chart, CurveChart, Key

BLANK = "-"
"""Printed where there is no value."""
Ramp = Literal["score", "error", "difference", "share"]
"""Meaning of a colour: the more, the better; the more, the worse; around 0; neither good nor bad."""
INVISIBLE = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f"  # control characters but tab and line ends
    "\u202a-\u202e\u2066-\u2069"  # embeddings, overrides and isolates: they reorder what stands around them
    "\u2028\u2029\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"  # tag characters: invisible text
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"  # no characters at all
)
"""Characters that are not seen, or that reorder what stands around them."""


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
    """The class of its colour, made by `harness.reporting.blocks.number.heat_class`."""
    href: str = ""
    """The anchor that it leads to, with ``#``."""
    style: Literal["", "code", "good", "bad", "best", "strip"] = ""
    """``best`` is bold; a ``strip`` has one shaded character per language."""
    parts: tuple[str | ItemText, ...] = ()
    """Pieces that it holds instead of one text."""
    listed: bool = False
    """Whether the parts are the entries of a list."""

    def __str__(self) -> str:
        """Return its words on one line."""
        if self.parts:
            return " ".join(segment if isinstance(segment, str) else segment.text for segment in self.parts)
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
    groups: tuple[tuple[str, int], ...] = ()
    """Names over several columns each, with how many, where a page has two rows of heads."""
    ramp: Ramp | None = None
    """The colours of its fields, which a page explains under it."""
    ramp_low: str = ""
    """Meaning of the lowest colour, where it is not the ramp's own end."""
    tight: bool = False
    """Whether a terminal shows it without rules and blank lines."""
    narrow: Table | None = None
    """Shown instead where a terminal is too narrow for it."""

    @property
    def plain_heads(self) -> list[str]:
        """The heads on one line each; a word that is broken with a hyphen is joined."""
        return [head.replace("-\n", "").replace("\n", " ") for head in self.heads]

    def part(self, columns: Sequence[int]) -> Table:
        """Return some of its columns, by their places after the first."""
        rows = (
            replace(row, fields=tuple(row.fields[at] for at in columns if row.fields)) for row in self.rows
        )
        words = frozenset(index for index, at in enumerate(columns) if at in self.words)
        return replace(self, heads=tuple(self.heads[at] for at in columns), rows=tuple(rows), words=words)


def make_table(
    title: str,
    heads: Sequence[str],
    rows: Iterable[TableRow | Sequence[str | Field]],
    *,
    words: Iterable[int] = (),
    **options: Any,
) -> Table:
    """Return a table from its heads and rows, of which the first ones name the rows; `options` are other fields."""
    corner, *rest = heads
    return Table(
        title=title, corner=corner, heads=tuple(rest), rows=rows_of(rows), words=frozenset(words), **options
    )


def rows_of(rows: Iterable[TableRow | Sequence[str | Field]]) -> tuple[TableRow, ...]:
    """Return rows of a table, also from sequences, whose first field is the label."""
    return tuple(
        row if isinstance(row, TableRow) else TableRow(label=row[0], fields=tuple(row[1:])) for row in rows
    )


@dataclass(frozen=True, slots=True)
class Note:
    """One paragraph; an empty one is a blank line of a terminal."""

    text: str
    style: Literal["", "note", "soft", "heading", "subheading", "warning", "lead"] = ""


@dataclass(frozen=True, slots=True)
class Notes:
    """A list of sentences; equal ones are shown once."""

    texts: Sequence[str]
    style: Literal["note", "findings"] = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Charts:
    """Charts side by side, and the table that formats without pictures show instead."""

    charts: tuple[Chart, ...]
    table: Table | None = None

    @property
    def legend_is_shared(self) -> bool:
        """Whether all charts are curves with the same legend, which is then shown once."""
        legends = {tuple(chart.keys) if isinstance(chart, CurveChart) else None for chart in self.charts}
        return len(legends) == 1 and None not in legends


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Blocks that a page shows when its title is opened."""

    title: str
    blocks: Sequence[Block]
    soft: str = ""
    """A few words that follow the title."""
    is_open: bool = False
    anchor: str | None = None
    heading: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One number, or one name, that a reader sees first."""

    title: str
    value: str
    small: str = ""
    """How sure it is."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Tiles:
    """Tiles side by side, in a page only."""

    tiles: Sequence[Tile]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A finding, in which one name leads to the place in the page that says more about it."""

    before: str = ""
    link: str
    after: str
    href: str


@dataclass(frozen=True, slots=True)
class Sentences:
    """A numbered list of findings, in a page only."""

    sentences: Sequence[Sentence]


@dataclass(frozen=True, slots=True, kw_only=True)
class TileMap:
    """Tasks against languages, which stand by family, or any rows against columns, as coloured tiles."""

    title: str
    families: Sequence[tuple[str, int]]
    """Name, and how many of the languages belong to it."""
    languages: Sequence[tuple[str, str]]
    """Code and name."""
    rows: Sequence[tuple[str, Sequence[Field]]]
    """Task, and one field per language."""
    keys: Sequence[Key] = ()
    corner: str = ""
    """Names of the rows and the columns, where a figure shows them."""

    @property
    def description(self) -> str:
        """The scores in words, for screen readers."""
        return "; ".join(
            f"{name}: {', '.join(field.text or '-' for field in fields)}" for name, fields in self.rows
        )

    @property
    def signs(self) -> str:
        """Legend of its tiles without a score, as far as it has them."""
        fields = [field for _, row in self.rows for field in row]
        failed = " !: the cell failed." if any(field.text == "!" for field in fields) else ""
        return (" Dotted: no score." if any(not field.text for field in fields) else "") + failed


@dataclass(frozen=True, slots=True)
class Columns:
    """Two groups of blocks side by side where a page is wide enough."""

    first: Sequence[Block]
    second: Sequence[Block]


Block = Table | Note | Notes | Charts | Fold | Tiles | Sentences | TileMap | Columns


def plain_blocks(blocks: Iterable[Block], *, charts: bool = True) -> Iterator[Table | Note | Notes]:
    """Yield the tables and texts of blocks, those within folds too; with `charts`, also the tables of charts."""
    for block in blocks:
        if isinstance(block, Fold):
            yield from plain_blocks(block.blocks, charts=charts)
        elif isinstance(block, Table | Note | Notes):
            yield block
        elif isinstance(block, Charts) and block.table is not None and charts:
            yield block.table


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a report with its heading and anchor."""

    name: str
    title: str
    blocks: Sequence[Block]
    tab: str = ""
    """The tab of a page that shows it; a page whose sections name fewer than two tabs has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Banner:
    """Warning for a reader before any number: that a run is partial, stopped, or of the sample."""

    title: str
    text: str
    href: str = ""
    """Where the page says what is missing."""
    command: str = ""
    """Command that continues the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """A file that a page holds."""

    label: str
    file: str
    media: str
    """``text/csv``."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole report."""

    title: str
    subtitle: str = ""
    sections: Sequence[Section]
    chips: Sequence[str] = ()
    """How the run was made, in a few words each."""
    banners: Sequence[Banner] = ()
    downloads: Sequence[Download] = ()

    @property
    def tabs(self) -> list[str]:
        """The tabs in the order of the sections; none where there would be only one."""
        titles = list(dict.fromkeys(section.tab for section in self.sections))
        return titles if len(titles) > 1 else []


def file_stem(prefix: str, name: str) -> str:
    """Return the name of a file without its suffix, as readable as a file system allows: ``heatmap-e5-small``."""
    plain = re.sub(r"[^\w.@-]+", "-", name).strip("-.")
    return f"{prefix}-{plain[:80]}" if plain else prefix


def anchor(prefix: str, *names: str) -> str:
    """Return the id of a place in a page: letters, digits and hyphens, different for different names."""
    slugs = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
        slugs.append(plain if plain == name else f"{plain}-{name.encode('utf-8', 'replace').hex()[:24]}")
    return "-".join([prefix, *slugs])


def visible(text: str) -> str:
    """Return a text with ``⟦U+202E⟧`` in the place of each character that is not seen or reorders others.

    Joiners and the left-to-right and right-to-left marks stay: many languages are written with them.
    """
    return INVISIBLE.sub(lambda match: f"⟦U+{ord(match[0]):04X}⟧", text)


Record = TypeVar("Record")


def table_of(
    title: str,
    records: Iterable[Record],
    columns: Mapping[str, Callable[[Record], str | Field]],
    *,
    words: Collection[str] = (),
    **options: Any,
) -> Table:
    """Return a table with one row per record.

    Args:
        title: Heading.
        records: What the rows are of.
        columns: Head -> the text of a record's field; the first column names the rows.
        words: Heads of the columns that hold words rather than numbers.
        options: Other fields of `Table`.
    """
    corner, *heads = columns
    rows = ([text(record) for text in columns.values()] for record in records)
    return Table(
        title=title,
        corner=corner,
        heads=tuple(heads),
        rows=tuple(TableRow(label=label, fields=tuple(fields)) for label, *fields in rows),
        words=frozenset(at for at, head in enumerate(heads) if head in words),
        **options,
    )
