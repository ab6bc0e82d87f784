"""What the languages cost: tables by script and language, and the premium of every language as a bar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.reporting.equity.report import EquityTable, equity_report
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
from harness.reporting.html.layout import fold, notes, section
from harness.reporting.html.material import Material
from harness.reporting.markup.chart import Bar, interval_bars
from harness.reporting.markup.element import Element, element

__all__ = ["equity_section", "side_table"]

INTRODUCTION = (
    "What a tokenizer makes of the same content in other languages: the more sub-words, the slower and dearer it is, "
    "and the less of it fits."
)


def equity_section(material: Material) -> Element | None:
    """Return what the languages of all runs cost; None where no run counted it."""
    report = equity_report(material.every)
    if not report:
        return None
    parts: list[Element] = [element("p", INTRODUCTION, class_="note")]
    if len(report.overall) > 1:
        names = [table.system for table in report.overall]
        parts.append(side_table("Systems side by side, all tasks", report.overall, names))
        if (found := notes(side_notes(report.overall))) is not None:
            parts.append(found)
    for overall in report.overall:
        own = [table for table in report.tables if table.system == overall.system]
        parts.append(element("h3", overall.system))
        shown = overall if len(own) > 1 else own[0]
        parts += _table(shown)
        if (chart := _chart(shown)) is not None:
            parts.append(chart)
        parts += [fold(table.title, *_table(table)) for table in own if table is not shown]
    return section("equity", "What the languages cost", parts, notes([*LEGEND, *report.notes]))


def side_table(
    caption: str, tables: Sequence[EquityTable], names: Sequence[str], *, language: str | None = None
) -> Element:
    """Return fertility, premium and truncation of tables side by side.

    Args:
        caption: What it shows.
        tables: In the order of their columns.
        names: What stands over the columns of each.
        language: The only language that is shown, by default all.
    """
    rows = [row for row in side_rows(tables) if language in {None, row.language}]
    systems = [element("th", name, scope="colgroup", colspan=len(SIDE_HEADS), class_="n") for name in names]
    over = element("tr", element("th", "language", scope="col", rowspan=2), systems)
    return _scrolling(caption, [over, element("tr", _heads(SIDE_HEADS * len(tables)))], rows)


def field_table(caption: str, heads: Sequence[str], rows: Iterable[FieldRow]) -> Element:
    """Return a table in which a script heads its languages."""
    return _scrolling(caption, [element("tr", element("th", "language", scope="col"), _heads(heads))], rows)


def _heads(names: Iterable[str]) -> list[Element]:
    return [element("th", name, scope="col", class_="n") for name in names]


def _scrolling(caption: str, head: Sequence[Element], rows: Iterable[FieldRow]) -> Element:
    table = element(
        "table",
        element("caption", caption),
        element("thead", head),
        element("tbody", [_row(row) for row in rows]),
        class_="levels cost",
    )
    return element("div", table, class_="scroll", tabindex=0, role="region", aria_label=caption)


def _row(row: FieldRow) -> Element:
    head = element("th", row.label, scope="row", class_="level1" if row.is_sum else "level2")
    return element("tr", head, [element("td", field, class_="n") for field in row.fields])


def _table(table: EquityTable) -> Iterator[Element]:
    yield field_table(f"{table.system}: {table.title}, by script", HEADS, cost_rows(table))
    if prompts := prompt_rows(table):
        yield field_table(
            f"{table.system}: {table.title}, tokens of prompts and answers", PROMPT_HEADS, prompts
        )
    if answers := answer_rows(table):
        yield field_table(f"{table.system}: {table.title}, language of the answers", ANSWER_HEADS, answers)
    if (found := notes(table_notes(table))) is not None:
        yield found


def _chart(table: EquityTable) -> Element | None:
    """Return the premiums from the largest to the smallest; None where no language has one."""
    rows = [row for row in table.rows if row.premium.tokens is not None]
    if not rows:
        return None
    rows.sort(key=lambda row: -(row.premium.tokens or 0.0))
    scripts = sorted({row.script for row in rows})
    bars = [
        Bar(
            label=f"{row.name}, {row.script}",
            value=row.premium.tokens,
            low=row.premium.low,
            high=row.premium.high,
            n=row.premium.items,
            group=scripts.index(row.script),
        )
        for row in rows
    ]
    title = f"{table.title}: premium of {table.system}"
    return interval_bars(title, bars, unit="sub-words relative to English", digits=2)
