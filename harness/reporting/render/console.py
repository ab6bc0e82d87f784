"""Blocks of reports for a terminal, made with rich; readable at 80 columns, light or dark, and when piped."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from harness.reporting.blocks.model import (
    BLANK,
    Block,
    Field,
    Note,
    Notes,
    Table,
    TableRow,
    as_field,
    plain_blocks,
)
from harness.reporting.blocks.number import STEPS

SAMPLE_WARNING = "SAMPLE DATA: the scores show that the machinery works, nothing about the model."
FILE_WIDTH = 100
"""Columns of a report that is written to a file."""
EDGES = 2
"""Number of characters that rich draws left and right of a table."""
GAP = 2
"""Between two columns."""
MORE_TABLES = 1
"""Tables that intervals may add where a terminal is narrow; more of them would hide the scores."""
SPARKS = "▁▂▃▄▅▆▇█"
ASCII_SPARKS = str.maketrans(SPARKS, "_.-=+*%#")
"""As high as the blocks, for terminals that cannot show those."""
SHADES = "·░▒▓█"
"""One character per score, from chance to 100."""
ASCII_SHADES = str.maketrans(SHADES, ".-+x#")
_STYLES = {"heading": "bold", "subheading": "bold", "note": "dim", "warning": "bold yellow"}
_SHADE_STYLES = ("color(245)", "color(110)", "color(74)", "color(32)", "color(33)")
"""The same colours for scores as characters and as numbers, readable on dark and on light terminals."""
_ROW_STYLES = {"bold": "bold", "dim": "dim"}
_FIELD_STYLES = {"good": "green", "bad": "red"}


def print_blocks(blocks: Sequence[Block], *, width: int = FILE_WIDTH) -> str:
    """Return blocks as plain text of a given width."""
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False, emoji=False)
    console.print(render_blocks(blocks, width=width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def render_blocks(blocks: Iterable[Block], *, width: int) -> RenderableType:
    """Return blocks as something rich can print at this width; what only a page can show is skipped."""
    return Trimmed(
        Group(*(renderable for block in plain_blocks(blocks) for renderable in _block(block, width)))
    )


def _block(block: Table | Note | Notes, width: int) -> list[RenderableType]:
    if isinstance(block, Table):
        return _table(block, width)
    # Names are shown as Text, since a model's name may hold what rich would read as markup.
    if isinstance(block, Note):
        return [Text(block.text, style=_STYLES.get(block.style, ""))]
    return _notes(block.texts)


def _notes(texts: Iterable[str]) -> list[RenderableType]:
    return [Padding(Text(note), (0, 0, 0, 2), expand=False) for note in dict.fromkeys(texts)]


def _table(table: Table, width: int) -> list[RenderableType]:
    if table.narrow is not None and _width(table, range(len(table.heads)), intervals=True) > width:
        return _table(table.narrow, width)
    column_groups, intervals = shown_parts(table, width)
    renderables: list[RenderableType] = [] if table.untitled else [Text(table.title, style="bold")]
    renderables += [_rich_table(table, columns, intervals=intervals) for columns in column_groups]
    return [*renderables, *_notes(table.notes), *([] if table.untitled or table.tight else [Text("")])]


def shown_parts(table: Table, width: int) -> tuple[list[list[int]], bool]:
    """Return the columns of each part of a table in a terminal of this width, and whether intervals are shown.

    A divided table is no wider than the terminal, but for a single column that is; no number is cut.
    """
    if not table.divided:
        return [list(range(len(table.heads)))], not table.terse
    plain, full = (_divide(table, width, intervals=intervals) for intervals in (False, True))
    intervals = len(full) <= len(plain) + MORE_TABLES
    return (full if intervals else plain), intervals


def _divide(table: Table, width: int, *, intervals: bool) -> list[list[int]]:
    """Return the columns of each part; those whose heads begin alike, as the metrics of a task, stay together."""
    groups: list[list[int]] = []
    heads = [head.partition("\n")[0] for head in table.heads]
    for _, group in groupby(range(len(heads)), key=heads.__getitem__):
        columns = list(group)
        fits = _width(table, columns, intervals=intervals) <= width
        for added in [columns] if fits else [[column] for column in columns]:
            if groups and _width(table, [*groups[-1], *added], intervals=intervals) <= width:
                groups[-1] += added
            else:
                groups.append(added)
    return groups


def needed_width(table: Table) -> int:
    """Return how wide a terminal must be for a table with its intervals."""
    used = _width(table, range(len(table.heads)), intervals=not table.terse)
    return used - EDGES if table.tight else used


def _width(table: Table, columns: Sequence[int], *, intervals: bool) -> int:
    """Return how wide some columns of a table are with its labels."""
    used = EDGES + (table.label_width or max(len(_label(row).plain) for row in table.rows))
    for column in columns:
        texts = table.heads[column].split("\n")
        texts += [_text(row.fields[column], intervals=intervals) for row in table.rows if row.fields]
        used += GAP + max(map(len, texts))
    return used


def _rich_table(table: Table, columns: Sequence[int], *, intervals: bool) -> RichTable:
    lines, gap = (None, GAP) if table.tight else (box.SIMPLE_HEAD, 1)
    rich_table = RichTable(box=lines, pad_edge=False, padding=(0, gap, 0, 0))
    rich_table.add_column(
        Text(table.corner),
        no_wrap=not table.folding,
        max_width=table.label_width,
        overflow="fold" if table.folding else "ellipsis",
    )
    has_curves = any(_is_spark(_text(field)) for row in table.rows for field in row.fields[:1])
    for column in columns:
        is_words = column in table.words
        rich_table.add_column(
            Text(table.heads[column]),
            justify="left" if is_words else "right",
            no_wrap=has_curves or not (table.terse or (is_words and table.folding)),
            overflow="fold",
        )
    for row, ends in _kept_rows(table.rows, columns):
        style = "bold" if row.style == "head" and not row.fields else _ROW_STYLES.get(row.style, "")
        fields = [_field(row, row.fields[column], intervals=intervals) for column in columns if row.fields]
        rich_table.add_row(_label(row), *fields, style=style, end_section=ends)
    return rich_table


def _kept_rows(rows: Sequence[TableRow], columns: Sequence[int]) -> Iterator[tuple[TableRow, bool]]:
    """Yield the rows of one part of a table, and whether each ends its group; what is blank there may be skipped."""
    group: list[TableRow] = []
    for row in rows:
        if not row.optional or any(_text(row.fields[column]) != BLANK for column in columns):
            group.append(row)
        if row.ends or row is rows[-1]:
            if any(not (member.style == "head" and member.optional) for member in group):
                yield from ((member, row.ends and member is group[-1]) for member in group)
            group = []


def _label(row: TableRow) -> Text:
    label = as_field(row.label)
    style = "bold" if row.style == "head" else ""
    return Text("  " * row.depth + (label.short or str(label)), style=style, overflow="ellipsis")


def _field(row: TableRow, content: str | Field, *, intervals: bool) -> RenderableType:
    field = as_field(content)
    text = _text(field, intervals=intervals)
    if field.style == "strip" or _is_spark(text):
        return _Blocks(text, SHADES if field.style == "strip" else "")
    style = _shade_style(field.shade) or _FIELD_STYLES.get(field.style, "")
    return Text(text, style="dim" if row.style == "head" or text == BLANK else style)


def _shade_style(shade: str) -> str:
    """Return the colour of a score; none for error rates and differences, which have other meanings."""
    if not (shade.startswith("h") and shade[1:].isdecimal()):
        return ""
    return _SHADE_STYLES[int(shade[1:]) * len(_SHADE_STYLES) // STEPS]


def _text(content: str | Field, *, intervals: bool = False) -> str:
    field = as_field(content)
    if field.parts:
        return str(field)
    text = field.short or field.text
    return f"{text} {field.small}" if intervals and field.small else text


def _is_spark(text: str) -> bool:
    return bool(text.strip()) and not text.strip(f"{SPARKS} ")


class Trimmed:
    """Printed text without blanks at the ends of its lines."""

    def __init__(self, shown: RenderableType) -> None:
        self._shown = shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self._shown, options, pad=False):
            while line and not line[-1].text.rstrip(" "):
                line.pop()
            if line:
                last = line.pop()
                line.append(Segment(last.text.rstrip(" "), last.style, last.control))
            yield from (*line, Segment.line())


class _Blocks:
    """Characters that are no words, one per language or layer: those of `shades` in the colour of their level."""

    def __init__(self, text: str, shades: str = "") -> None:
        self._text = text
        self._shades = shades

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = Text(self._text, no_wrap=True, overflow="crop")
        for index, character in enumerate(self._text):
            if character in self._shades:
                text.stylize(_SHADE_STYLES[SHADES.index(character)], index, index + 1)
        if options.ascii_only:
            text.plain = self._text.translate(ASCII_SPARKS | ASCII_SHADES)
        yield text

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(len(self._text), len(self._text))


def sparkline(points: Sequence[tuple[int, float]], limits: tuple[float, float]) -> str:
    """Return one character per layer, from the lowest level to the highest.

    Layers that are missing are blank, so that the columns of two curves are the same layers. Where all values are
    equal, they are in the middle.
    """
    by_layer, (low, high), last = dict(points), limits, len(SPARKS) - 1

    def spark(value: float | None) -> str:
        if value is None:
            return " "
        fraction = 0.5 if high <= low else (value - low) / (high - low)
        return SPARKS[min(last, max(0, round(fraction * last)))]

    return "".join(spark(by_layer.get(layer)) for layer in range(max(by_layer, default=-1) + 1))
