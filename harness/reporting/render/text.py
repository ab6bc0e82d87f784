"""Reports as text: cells as rows of plain values (CSV, JSON), blocks as Markdown, and as LaTeX tables for booktabs.

In LaTeX, what is no table is a comment, and charts are skipped. Every table fits a page: one that is wider than its
column is scaled, and one that would be too small then, or is longer than a page, is printed as several. All have the
same caption with their number.
"""

from __future__ import annotations

import csv
import io
import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

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
from harness.scores.table import COLUMNS as SCORE_COLUMNS
from harness.storage.run_folder import Run

COLUMNS = {
    column.name: f"ci_{column.name}" if column.name in {"low", "high"} else column.name
    for column in SCORE_COLUMNS
    if column.name not in {"run", "family", "script", "headline", "seconds"}
}
"""Columns of the table of scores -> their names in csv and json reports."""


_FORMULA = ("=", "+", "-", "@")
"""Characters that a formula of a spreadsheet begins with, after white space too."""
_MARKDOWN_LEVELS = {"heading": "## ", "subheading": "### "}
_PLAIN = "\\{}$&#%_^~<>|[]*±≤–\0°§†‡⁺"
# After the end of a row, brackets and the asterisk would be its arguments.
_ESCAPED = (
    r"\textbackslash{} \{ \} \$ \& \# \% \_ \textasciicircum{} \textasciitilde{} \textless{} \textgreater{} \textbar{} "
    r"{[} {]} {*} $\pm$ $\leq$ -- {} \textdegree{} \S{} \dag{} \ddag{} $^{+}$"
)
_ESCAPES = dict(zip(_PLAIN, _ESCAPED.split(" "), strict=True))
_HYPHENS = re.compile("-(?=-)")
"""Two of them, as in an option, would be set as a dash."""
_MINUS = re.compile(r"(?<![\w.-])-(?=\d)")
_PREAMBLE = "% Needs \\usepackage{booktabs,graphicx}. Names in other scripts need XeLaTeX or LuaLaTeX."
LABEL_WORDS = 5
BOX = r"\sbox0{"
FITTED = r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi"
"""Prints the table that was kept in a box, not wider than the column of the page."""
MOST_ROWS = 40
"""With the caption as high as a page of 10 points."""
MOST_CHARACTERS = 130
"""In a row: about twice the column of a page of 10 points, which scales to 5 points."""
SHORT = 12
"""Characters of a head that is not broken."""
GAP = 2
"""Characters that the space between two columns is wide."""


def cell_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return one row for every metric of every cell, and one for every cell without metrics; fractions in [0, 1]."""
    from harness.scores.table import read_scores  # polars takes a tenth of a second

    return read_scores(runs).select(*COLUMNS).rename(COLUMNS).to_dicts()


def render_csv(runs: Sequence[Run]) -> str:
    """Return the rows of cells as CSV."""
    return csv_text(cell_rows(runs), [*COLUMNS.values()])


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Return rows as CSV with a header, which are their names by default.

    A field that a spreadsheet would run as a formula gets a quote.
    """
    if not rows and not columns:
        return ""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns or list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _inert(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def _inert(value: Any) -> Any:
    """Return a text that a spreadsheet would run as a formula with a quote before it; other values as they are.

    A carriage return becomes a line end, which is quoted: it would begin a new row.
    """
    if not isinstance(value, str):
        return value
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def render_json(runs: Sequence[Run]) -> str:
    """Return ``results.json`` of the first run with those of the others under ``baselines``."""
    content = {**runs[0].results.to_json(), "baselines": [run.results.to_json() for run in runs[1:]]}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def render_markdown(blocks: Iterable[Block]) -> str:
    """Return blocks as a part of a Markdown document; charts have their table."""
    return "\n".join(line for block in plain_blocks(blocks) for line in _markdown_block(block)) + "\n"


def _markdown_block(block: Table | Note | Notes) -> Iterator[str]:
    if isinstance(block, Table):
        yield from _markdown_table(block)
    elif isinstance(block, Notes):
        yield from ["", *(f"- {escape_markdown(text)}" for text in dict.fromkeys(block.texts))]
    elif block.text:
        text = escape_markdown(block.text)
        yield ""
        yield (
            f"> **{text}**" if block.style == "warning" else f"{_MARKDOWN_LEVELS.get(block.style, '')}{text}"
        )


def _markdown_table(table: Table) -> Iterator[str]:
    if not table.untitled:
        yield from ["", f"### {escape_markdown(table.title)}"]
    rules = (" --- |" if column in table.words else " ---: |" for column in range(len(table.heads)))
    yield from ["", _markdown_line([table.corner, *table.plain_heads]), f"| --- |{''.join(rules)}"]
    yield from (_markdown_row(row, len(table.heads)) for row in table.rows)
    if table.notes:
        yield from ["", *(f"- {escape_markdown(note)}" for note in table.notes)]


def _markdown_row(row: TableRow, columns: int) -> str:
    label = escape_markdown(str(row.label))
    label = f"**{label}**" if row.style in {"head", "bold"} or not row.fields else label
    fields = map(as_field, row.fields or ("",) * columns)
    return f"| {label} | {' | '.join(_emphasised(str(field), field.style == 'best') for field in fields)} |"


def _emphasised(text: str, is_best: bool) -> str:
    return f"**{escape_markdown(text)}**" if is_best else escape_markdown(text)


def _markdown_line(texts: Iterable[str]) -> str:
    return f"| {' | '.join(map(escape_markdown, texts))} |"


def escape_markdown(text: str) -> str:
    """Return a text in which no character is Markdown."""
    for character in "\\|<>*_`[]":
        text = text.replace(character, f"\\{character}")
    return text.replace("\n", " ")


def render_latex(blocks: Iterable[Block]) -> str:
    """Return blocks as the body of a LaTeX document."""
    labels = Counter[str]()
    lines = (line for block in plain_blocks(blocks, charts=False) for line in _latex_block(block, labels))
    return "\n".join([_PREAMBLE, *lines]) + "\n"


def escape_latex(text: str) -> str:
    """Return a text in which no character is a command; line ends become spaces, control characters are replaced."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    return "".join(_ESCAPES.get(character, character) for character in _HYPHENS.sub("-\0", plain))


def _latex_block(block: Table | Note | Notes, labels: Counter[str]) -> Iterator[str]:
    if isinstance(block, Table):
        pieces = list(_pieces(block))
        for number, piece in enumerate(pieces, start=1):
            of = f" ({number} of {len(pieces)})" if len(pieces) > 1 else ""
            yield from _latex_table(replace(piece, title=f"{block.title}{of}"), _label(block, labels))
        yield from map(_comment, block.notes)
    else:
        texts = dict.fromkeys(block.texts) if isinstance(block, Notes) else filter(None, [block.text])
        yield from map(_comment, texts)


def _comment(text: str) -> str:
    return f"% {' '.join(text.split())}"


def _pieces(table: Table) -> Iterator[Table]:
    """Yield the table in pieces that fit a page: some of its columns, and of these some of its rows."""
    column_groups = _column_groups(table)
    # Heads over several columns fit the whole table alone.
    groups = table.groups if len(column_groups) == 1 else ()
    for columns in column_groups:
        part = replace(table.part(columns), groups=groups)
        count = -(-len(part.rows) // MOST_ROWS) or 1
        size = -(-len(part.rows) // count) or 1
        for start in range(0, max(len(part.rows), 1), size):
            yield replace(part, rows=part.rows[start : start + size])


def _column_groups(table: Table) -> list[list[int]]:
    """Return the places of columns, as many together as `MOST_CHARACTERS` and the labels of rows leave space for."""
    label = max((len(str(row.label)) + 2 * row.depth for row in table.rows), default=0)
    widths = [
        GAP + max(map(len, [*_head_lines(table, at), *(_plain(row, at) for row in table.rows)]))
        for at in range(len(table.heads))
    ]
    groups: list[list[int]] = [[]]
    for at, width in enumerate(widths):
        if groups[-1] and label + width + sum(widths[index] for index in groups[-1]) > MOST_CHARACTERS:
            groups.append([])
        groups[-1].append(at)
    return groups


def _plain(row: TableRow, at: int) -> str:
    field = as_field(row.fields[at]) if row.fields else as_field("")
    return f"{field} {field.small}" if field.small and not field.parts else str(field)


def _head_lines(table: Table, at: int) -> list[str]:
    """Return the head of a column in lines, broken at spaces where it would be wider than the column's fields."""
    width = max((len(_plain(row, at)) for row in table.rows), default=0)
    return [
        wrapped
        for line in str(table.heads[at]).split("\n")
        for wrapped in textwrap.wrap(line, max(width, *map(len, line.split()), SHORT), break_on_hyphens=False)
        or [""]
    ]


def _latex_head(table: Table, at: int) -> str:
    lines = [escape_latex(line) for line in _head_lines(table, at)]
    joined = r"\\".join(lines)
    return rf"\shortstack[r]{{{joined}}}" if len(lines) > 1 else joined


def _label(table: Table, labels: Counter[str]) -> str:
    """Return ``tab:`` and the first words of a title, with a number from the second table of these words on."""
    words = re.findall(r"[a-z0-9]+", table.title.casefold())[:LABEL_WORDS]
    label = "-".join(["tab:" + (words[0] if words else "table"), *words[1:]])
    labels[label] += 1
    return label if labels[label] == 1 else f"{label}-{labels[label]}"


def _latex_table(table: Table, label: str) -> Iterator[str]:
    columns = "".join("l" if column in table.words else "r" for column in range(len(table.heads)))
    heads = [escape_latex(table.corner), *(_latex_head(table, at) for at in range(len(table.heads)))]
    yield from ["", r"\begin{table}", r"\centering", rf"\caption{{{escape_latex(table.title)}}}"]
    yield from [rf"\label{{{label}}}", rf"{BOX}\begin{{tabular}}{{l{columns}}}", r"\toprule"]
    if table.groups:
        names = (rf"\multicolumn{{{span}}}{{c}}{{{escape_latex(name)}}}" for name, span in table.groups)
        yield _latex_line("", *names)
    yield from [_latex_line(*heads), r"\midrule"]
    for row in table.rows:
        yield _latex_row(row, len(table.heads))
        if row.ends:
            yield r"\addlinespace"
    yield from [r"\bottomrule", r"\end{tabular}}", FITTED, r"\end{table}"]


def _latex_row(row: TableRow, columns: int) -> str:
    label = escape_latex(str(row.label))
    label = rf"\textit{{{label}}}" if row.style == "head" else r"\quad " * row.depth + label
    return _latex_line(label, *map(_latex_field, row.fields or ("",) * columns))


def _latex_line(*fields: str) -> str:
    return " & ".join(fields) + r" \\"


def _latex_field(content: str | Field) -> str:
    field = as_field(content)
    if str(field) == BLANK:
        return "--"
    text = _MINUS.sub("$-$", escape_latex(field.text.strip() if not field.parts else str(field)))
    small = rf" {{\small {escape_latex(field.small)}}}" if field.small else ""
    return (rf"\textbf{{{text}}}" if field.style == "best" else text) + small
