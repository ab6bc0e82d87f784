"""The equity report for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

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
    side_rows,
    table_notes,
)

__all__ = ["WIDE", "render_equity"]

LABEL = 18
SYSTEM = 34
"""Columns of a terminal that `SIDE_HEADS` of one system take."""
WIDE = 98
"""From here on a table has all columns; narrower, it is divided behind the first `RATIOS` ones."""
RATIOS = 6
NOTHING_COUNTED = "These runs have no ledger: their models count no sub-words, or an older version made them."


def render_equity(report: EquityReport, *, width: int) -> RenderableType:
    """Return all tables: the systems beside each other, then each system over all tasks and task by task.

    Tables that are too wide are divided, systems by systems, or between ratios and sums.
    """
    if not report:
        return Group(Text(NOTHING_COUNTED), *_told(report.notes))
    parts: list[RenderableType] = []
    if len(report.overall) > 1:
        systems = [table.system for table in report.overall]
        parts += [Text("Systems beside each other, all tasks", style="bold")]
        parts += [Text(f"  {number}: {name}") for number, name in enumerate(systems, start=1)]
        heads = [f"{number}: {head}" for number in range(1, len(systems) + 1) for head in SIDE_HEADS]
        size = max(1, (width - LABEL) // SYSTEM) * len(SIDE_HEADS)
        parts += _tables(heads, side_rows(report.overall), size)
    for overall in report.overall:
        own = [table for table in report.tables if table.system == overall.system]
        parts.append(Text(overall.system, style="bold"))
        for table in [*([overall] if len(own) > 1 else []), *own]:
            parts += _task(table, width)
    return Group(*parts, *_told([*LEGEND, *report.notes]))


def _task(table: EquityTable, width: int) -> list[RenderableType]:
    size = len(HEADS) if width >= WIDE else RATIOS
    parts: list[RenderableType] = [Text(table.title), *_tables(HEADS, list(cost_rows(table)), size)]
    if prompts := prompt_rows(table):
        parts += [Text(f"{table.title}: tokens of prompts and answers")]
        parts += _tables(PROMPT_HEADS, prompts, len(PROMPT_HEADS))
    if answers := answer_rows(table):
        size = len(ANSWER_HEADS) if width >= WIDE else -(-len(ANSWER_HEADS) // 2)
        parts += [Text(f"{table.title}: language of the answers"), *_tables(ANSWER_HEADS, answers, size)]
    return [*parts, *_told(table_notes(table))]


def _tables(heads: Sequence[str], rows: Sequence[FieldRow], size: int) -> list[RenderableType]:
    """Return the rows in tables of at most `size` columns."""
    return [
        _table(
            heads[start : start + size],
            [replace(row, fields=row.fields[start : start + size]) for row in rows],
        )
        for start in range(0, len(heads), size)
    ]


def _table(heads: Sequence[str], rows: Iterable[FieldRow]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("language", no_wrap=True, max_width=LABEL)
    for head in heads:
        table.add_column(Text(head), justify="right")
    for row in rows:
        label = Text(row.label, style="bold") if row.is_sum else Text(f"  {row.label}")
        table.add_row(label, *(Text(field, style="dim" if row.is_sum else "") for field in row.fields))
    return table


def _told(notes: Iterable[str]) -> list[RenderableType]:
    return [Padding(Text(note), (0, 0, 0, 2)) for note in notes]
