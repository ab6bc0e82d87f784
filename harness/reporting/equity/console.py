"""The equity report for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    SIDE_HEADS,
    FieldRow,
    answer_rows,
    cost_rows,
    side_rows,
    table_notes,
)

__all__ = ["render_equity"]

NOTHING_COUNTED = "These runs have no ledger: their models count no sub-words, or an older version made them."


def render_equity(report: EquityReport) -> RenderableType:
    """Return all tables: the systems beside each other, then each system over all tasks and task by task."""
    if not report:
        return Group(Text(NOTHING_COUNTED), *_told(report.notes))
    parts: list[RenderableType] = []
    if len(report.overall) > 1:
        systems = [table.system for table in report.overall]
        parts += [Text("Systems beside each other, all tasks", style="bold")]
        parts += [Text(f"  {number}: {name}") for number, name in enumerate(systems, start=1)]
        heads = [f"{number}: {head}" for number in range(1, len(systems) + 1) for head in SIDE_HEADS]
        parts.append(_table("language", heads, side_rows(report.overall)))
    for overall in report.overall:
        own = [table for table in report.tables if table.system == overall.system]
        parts.append(Text(overall.system, style="bold"))
        for table in [*([overall] if len(own) > 1 else []), *own]:
            parts += _task(table)
    return Group(*parts, *_told([*LEGEND, *report.notes]))


def _task(table: EquityTable) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(table.title), _table("language", HEADS, cost_rows(table))]
    if answers := answer_rows(table):
        parts += [Text(f"{table.title}: language of the answers"), _table("language", ANSWER_HEADS, answers)]
    return [*parts, *_told(table_notes(table))]


def _table(corner: str, heads: Sequence[str], rows: Iterable[FieldRow]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(corner, no_wrap=True, max_width=18)
    for head in heads:
        table.add_column(Text(head), justify="right", no_wrap=" " not in head)
    for row in rows:
        label = Text(row.label, style="bold") if row.is_sum else Text(f"  {row.label}")
        table.add_row(label, *(Text(field, style="dim" if row.is_sum else "") for field in row.fields))
    return table


def _told(notes: Iterable[str]) -> list[RenderableType]:
    return [Padding(Text(note), (0, 0, 0, 2)) for note in notes]
