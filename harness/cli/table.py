"""Plain tables that fold long fields, laid out as rich does it.

Rich needs a tenth of a second for the few hundred rows of a list of tasks, and half as long to be imported.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from harness.cli.output import printable

__all__ = ["PLAIN_WIDTH", "print_table", "render_table"]

PLAIN_WIDTH = 100
"""Columns of what is written into a pipe."""
GAP = 2
_WORD = re.compile(r"\s*\S+\s*")
_BOLD = "\x1b[1m{}\x1b[0m"


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a plain table that folds long fields."""
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size((PLAIN_WIDTH, 25)).columns if is_terminal else PLAIN_WIDTH
    lines = render_table(heads, rows, width=width)
    if is_terminal and os.environ.get("TERM") != "dumb":
        lines[0] = _BOLD.format(lines[0])
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def render_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, width: int) -> list[str]:
    """Return the lines of a table, the heads first; fields that do not fit are folded between words."""
    table = [[_cleaned(field) for field in row] for row in (heads, *rows)]
    widest = [max(_length(row[column]) for row in table) for column in range(len(heads))]
    gaps = [GAP] * (len(heads) - 1) + [0]
    outer = _shrunk([min(length + gap, width) for length, gap in zip(widest, gaps, strict=True)], width)
    widths = [max(length - gap, 1) for length, gap in zip(outer, gaps, strict=True)]
    lines = []
    for row in table:
        folded = [_folded(field, length) for field, length in zip(row, widths, strict=True)]
        for number in range(max(map(len, folded))):
            parts = [column[number] if number < len(column) else "" for column in folded]
            sized = [_padded(part, length) for part, length in zip(parts, widths, strict=True)]
            lines.append((" " * GAP).join(sized))
    return lines


def _cleaned(field: str) -> str:
    """Return a field whose control characters are shown: names and licences come from files of third parties."""
    return printable(field).replace("\r\n", "\n").expandtabs(8)


def _length(field: str) -> int:
    return cell_len(field) if "\n" not in field else max(map(cell_len, field.split("\n")))


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def _shrunk(widths: list[int], most: int) -> list[int]:
    """Return the widths of columns that fit: the widest are cut until they are as wide as the next."""
    widths = list(widths)
    while (excess := sum(widths) - most) > 0:
        first = max(widths)
        second = max((width for width in widths if width != first), default=0)
        if not second:
            break
        widths = _reduced(
            widths, excess, [min(excess, first - second) * (width == first) for width in widths]
        )
    excess = sum(widths) - most
    return _reduced(widths, excess, widths) if excess > 0 else widths


def _reduced(widths: Sequence[int], excess: int, most: Sequence[int]) -> list[int]:
    """Return the widths less `excess` in all, shared evenly among the columns that may lose something."""
    columns = sum(limit > 0 for limit in most)
    reduced = []
    for width, limit in zip(widths, most, strict=True):
        cut = min(limit, round(excess / columns)) if limit > 0 else 0
        reduced.append(width - cut)
        excess -= cut
        columns -= limit > 0
    return reduced


def _folded(field: str, width: int) -> list[str]:
    if cell_len(field) <= width and "\n" not in field:
        return [field]
    lines = [line for text in field.split("\n") for line in _words_in_lines(text, width)]
    return [line if cell_len(line) <= width else f"{set_cell_size(line, width - 1)}…" for line in lines]


def _words_in_lines(text: str, width: int) -> list[str]:
    lines = [""]
    used = 0
    for word in _WORD.findall(text):
        needed = cell_len(word.rstrip())
        if used and used + needed > width:
            lines.append("")
            used = 0
        lines[-1] += word
        used += cell_len(word)
    return [line if cell_len(line) <= width else line.rstrip() for line in lines]
