"""The equity report for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.reporting.equity.report import EquityReport, EquityTable
from harness.reporting.equity.table import (
    ANSWER_HEADS,
    HEADS,
    LEGEND,
    PROMPT_HEADS,
    SIDE_HEADS,
    FieldRow,
    answer_rows,
    cost_rows,
    prompt_rows,
    side_notes,
    side_rows,
    table_notes,
)

__all__ = ["WIDTH", "render_equity"]

LABEL = 18
GAP = 2
"""Between two columns."""
WIDTH = 100
"""Of a file."""
NOTHING_COUNTED = (
    "No ledger: these models count no sub-words, these tasks name no texts, or the runs are older."
)


def render_equity(report: EquityReport, *, width: int) -> RenderableType:
    """Return all tables: the systems side by side, then each system over all tasks and task by task.

    A table that is too wide is divided between columns; no number is cut.
    """
    if not report:
        return Group(Text(NOTHING_COUNTED), *_indented(report.notes))
    parts: list[RenderableType] = []
    if len(report.overall) > 1:
        systems = [table.system for table in report.overall]
        parts += [Text("Systems side by side, all tasks", style="bold")]
        parts += [Text(f"  {number}: {name}") for number, name in enumerate(systems, start=1)]
        heads = [f"{number}: {head}" for number in range(1, len(systems) + 1) for head in SIDE_HEADS]
        parts += [*_tables(heads, side_rows(report.overall), width), *_indented(side_notes(report.overall))]
    for overall in report.overall:
        own = [table for table in report.tables if table.system == overall.system]
        parts.append(Text(overall.system, style="bold"))
        for table in [*([overall] if len(own) > 1 else []), *own]:
            parts += _task(table, width)
    return Group(*parts, *_indented([*LEGEND, *report.notes]))


def _task(table: EquityTable, width: int) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(table.title), *_tables(HEADS, list(cost_rows(table)), width)]
    if prompts := prompt_rows(table):
        parts += [
            Text(f"{table.title}: tokens of prompts and answers"),
            *_tables(PROMPT_HEADS, prompts, width),
        ]
    if answers := answer_rows(table):
        parts += [Text(f"{table.title}: language of the answers"), *_tables(ANSWER_HEADS, answers, width)]
    return [*parts, *_indented(table_notes(table))]


def _tables(heads: Sequence[str], rows: Sequence[FieldRow], width: int) -> Iterator[Table]:
    """Yield the rows in one table, or in several that have as many columns each as fit."""
    columns = [max(len(head), *(len(row.fields[place]) for row in rows)) for place, head in enumerate(heads)]
    start, used = 0, LABEL
    for end, size in enumerate(columns):
        if end > start and used + GAP + size > width:
            yield _table(heads, rows, slice(start, end))
            start, used = end, LABEL
        used += GAP + size
    yield _table(heads, rows, slice(start, None))


def _table(heads: Sequence[str], rows: Iterable[FieldRow], columns: slice) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("language", no_wrap=True, max_width=LABEL)
    for head in heads[columns]:
        table.add_column(Text(head), justify="right", no_wrap=True)
    for row in rows:
        label = Text(row.label, style="bold") if row.is_sum else Text(f"  {row.label}")
        table.add_row(
            label, *(Text(field, style="dim" if row.is_sum else "") for field in row.fields[columns])
        )
    return table


def _indented(notes: Iterable[str]) -> list[RenderableType]:
    return [Padding(Text(note), (0, 0, 0, 2)) for note in notes]
