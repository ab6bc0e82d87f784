"""What languages cost the systems of a board's runs: fertility, premium and truncation side by side."""

from __future__ import annotations

from collections.abc import Sequence

from harness.reporting.equity.report import EquityReport, EquityTable
from harness.reporting.equity.table import SIDE_LEGEND, side_notes
from harness.reporting.html.equity import side_table
from harness.reporting.html.layout import notes
from harness.reporting.markup.element import Element, element

__all__ = ["equity_section"]


def equity_section(
    report: EquityReport, *, task: str | None = None, language: str | None = None
) -> Element | None:
    """Return the table over all tasks, or over one, of all languages, or of one; None where nothing was counted.

    Args:
        report: Of the board's runs.
        task: The task that the page is about; each way in which a system ran it is a system of its own there.
        language: The language that the page is about.
    """
    tables = [table for table in report.tables if table.task == task] if task else list(report.overall)
    if not any(language in {None, row.code} for table in tables for row in table.rows):
        return None
    names = [_system(table, tables) for table in tables]
    return element(
        "section",
        element("h2", "What the languages cost"),
        side_table(f"Of {task or 'all tasks'}, by system", tables, names, language=language),
        notes([*side_notes(tables), *SIDE_LEGEND]),
        class_="equity",
    )


def _system(table: EquityTable, tables: Sequence[EquityTable]) -> str:
    """Return the system, with how it ran the task where it did so in several ways."""
    several = sum(other.system == table.system for other in tables) > 1
    return (
        f"{table.system} ({table.protocol} {table.method} {table.view}".rstrip() + ")"
        if several
        else table.system
    )
