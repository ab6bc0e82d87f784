"""Blocks of reports as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.reporting.blocks.model import Block, Note, Notes, Table, TableRow, as_field, plain_blocks

_LEVELS = {"heading": "## ", "subheading": "### "}


def render_markdown(blocks: Iterable[Block]) -> str:
    """Return blocks as a part of a Markdown document; charts have their table."""
    return "\n".join(line for block in plain_blocks(blocks) for line in _block(block)) + "\n"


def _block(block: Table | Note | Notes) -> Iterator[str]:
    if isinstance(block, Table):
        yield from _table(block)
    elif isinstance(block, Notes):
        yield from ["", *(f"- {escape_markdown(text)}" for text in dict.fromkeys(block.texts))]
    elif block.text:
        text = escape_markdown(block.text)
        yield ""
        yield f"> **{text}**" if block.style == "warning" else f"{_LEVELS.get(block.style, '')}{text}"


def _table(table: Table) -> Iterator[str]:
    if not table.untitled:
        yield from ["", f"### {escape_markdown(table.title)}"]
    rules = (" --- |" if column in table.words else " ---: |" for column in range(len(table.heads)))
    yield from ["", _line([table.corner, *table.plain_heads]), f"| --- |{''.join(rules)}"]
    yield from (_row(row, len(table.heads)) for row in table.rows)
    if table.notes:
        yield from ["", *(f"- {escape_markdown(note)}" for note in table.notes)]


def _row(row: TableRow, columns: int) -> str:
    label = escape_markdown(str(row.label))
    label = f"**{label}**" if row.style in {"head", "bold"} or not row.fields else label
    fields = map(as_field, row.fields or ("",) * columns)
    return f"| {label} | {' | '.join(_emphasised(str(field), field.style == 'best') for field in fields)} |"


def _emphasised(text: str, is_best: bool) -> str:
    return f"**{escape_markdown(text)}**" if is_best else escape_markdown(text)


def _line(texts: Iterable[str]) -> str:
    return f"| {' | '.join(map(escape_markdown, texts))} |"


def escape_markdown(text: str) -> str:
    """Return a text in which no character is Markdown."""
    for character in "\\|<>*_`[]":
        text = text.replace(character, f"\\{character}")
    return text.replace("\n", " ")
