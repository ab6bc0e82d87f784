"""Blocks of reports as LaTeX tables for the booktabs package; what is no table is a comment, and charts are skipped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from harness.reporting.model import BLANK, Block, Field, Fold, Note, Notes, Table, TableRow, as_field

__all__ = ["escape_latex", "render_latex"]

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # After the end of a row these would be its arguments.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "–": "--",
    "\0": "{}",
    "°": r"\textdegree{}",
    "§": r"\S{}",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
    "⁺": r"$^{+}$",
}
_HYPHENS = re.compile("-(?=-)")
"""Two of them, as in an option, would be set as a dash."""
_MINUS = re.compile(r"(?<![\w.-])-(?=\d)")
HEAD = "% Needs booktabs: \\usepackage{booktabs}. Names in other scripts need XeLaTeX or LuaLaTeX."
FITTED_HEAD = HEAD.replace("booktabs: \\usepackage{booktabs}", "\\usepackage{booktabs,graphicx}")
BOX = r"\sbox0{"
FITTED = r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi"
"""Prints the table that was kept in a box, not wider than the column of the page."""


def render_latex(blocks: Iterable[Block], *, fitted: bool = False) -> str:
    """Return blocks as the body of a LaTeX document; `fitted` tables are scaled to their column, by graphicx."""
    lines = [line for block in blocks for line in _block(block, fitted=fitted)]
    return "\n".join([FITTED_HEAD if fitted else HEAD, *lines]) + "\n"


def escape_latex(text: str) -> str:
    """Return a text in which no character is a command; line ends become spaces, control characters are replaced."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    return "".join(_ESCAPES.get(character, character) for character in _HYPHENS.sub("-\0", plain))


def _block(block: Block, *, fitted: bool) -> Iterator[str]:
    if isinstance(block, Table):
        yield from _table(block, fitted=fitted)
    elif isinstance(block, Note):
        yield from [_comment(block.text)] if block.text else []
    elif isinstance(block, Notes):
        yield from map(_comment, dict.fromkeys(block.texts))
    elif isinstance(block, Fold):
        for inner in block.blocks:
            yield from _block(inner, fitted=fitted)


def _comment(text: str) -> str:
    return f"% {' '.join(text.split())}"


def _table(table: Table, *, fitted: bool) -> Iterator[str]:
    columns = "".join("l" if column in table.words else "r" for column in range(len(table.heads)))
    yield from ["", r"\begin{table}", r"\centering", rf"\caption{{{escape_latex(table.title)}}}"]
    yield from [rf"{BOX if fitted else ''}\begin{{tabular}}{{l{columns}}}", r"\toprule"]
    yield " & ".join(map(escape_latex, [table.corner, *table.plain_heads])) + r" \\"
    yield r"\midrule"
    for row in table.rows:
        yield _row(row, len(table.heads))
        if row.ends:
            yield r"\addlinespace"
    yield from [r"\bottomrule", r"\end{tabular}" + ("}" if fitted else ""), *([FITTED] if fitted else [])]
    yield r"\end{table}"
    yield from map(_comment, table.notes)


def _row(row: TableRow, columns: int) -> str:
    label = escape_latex(str(row.label))
    label = rf"\textit{{{label}}}" if row.style == "head" else r"\quad " * row.depth + label
    return " & ".join([label, *map(_field, row.fields or ("",) * columns)]) + r" \\"


def _field(content: str | Field) -> str:
    own = as_field(content)
    if str(own) == BLANK:
        return "--"
    text = _MINUS.sub("$-$", escape_latex(own.text.strip() if not own.parts else str(own)))
    small = rf" {{\small {escape_latex(own.small)}}}" if own.small else ""
    return (rf"\textbf{{{text}}}" if own.style == "best" else text) + small
