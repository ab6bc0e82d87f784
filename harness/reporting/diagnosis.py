"""A diagnosis as tables for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from harness.analysis.diagnosis import LEAST_ITEMS, Diagnosis
from harness.reporting.console import SAMPLE_WARNING

__all__ = ["interval_text", "render_diagnosis"]

NOTHING = "-"
Row = Mapping[str, Any]
SINGLE_LEGEND = (
    "Scores x100 of the worst and the best bucket of each attribute, of those with 30 items or more where there are "
    "two; brackets: 95 % interval. Exploratory: the buckets are not corrected for their number."
)
PAIR_LEGEND = (
    "Differences x100, second system minus first, where they are largest in either direction; brackets: 95 % cluster "
    "bootstrap interval. q: Benjamini-Hochberg over all buckets of this diagnosis; *: q <= 0.05, with 30 items or more."
)
DATA_LEGEND = "Mean, and quartiles: a quarter, half and three quarters of the items have at most this value."


def render_diagnosis(diagnosis: Diagnosis, *, each_language: bool = False) -> RenderableType:
    """Return the tables: those of all languages together or, where there is one or `each_language`, of each."""
    warning = Panel(Text(SAMPLE_WARNING, style="bold"), box=box.ASCII, expand=False)
    rows = diagnosis.rows(diagnosis.kind)
    parts: list[RenderableType] = [warning] if diagnosis.sample and diagnosis.kind != "data" else []
    if diagnosis.kind == "data":
        parts += _data_tables(rows)
        legend = DATA_LEGEND
    else:
        single = diagnosis.kind == "single"
        for _, group in groupby(rows, key=_of_task):
            parts += _task(list(group), single=single, each_language=each_language)
        legend = SINGLE_LEGEND if single else PAIR_LEGEND
    notes = [Text(note) for note in diagnosis.notes]
    return Group(*parts, *notes, Text(legend, style="dim"))


def interval_text(row: Row) -> str:
    """Return the edges of a row's bucket: ``(2, 5]``, ``[1, 2]``, ``2``, ``> 13``; empty where there are none."""
    low, high = row["low"], row["high"]
    if low is None or high is None:
        return "" if low is high else f"<= {high:.3g}" if low is None else f"> {low:.3g}"
    if low == high:
        return f"{low:.3g}"
    return f"{'[' if row['low_closed'] else '('}{low:.3g}, {high:.3g}]"


def _of_task(row: Row) -> tuple[str, ...]:
    names = row.get("systems") or [row["system"]]
    return (row["task"], str(row["view"]), row["protocol"], row["method"], *names)


def _task(rows: Sequence[Row], *, single: bool, each_language: bool) -> list[RenderableType]:
    first = rows[0]
    view = ", ".join(f"{name}={value}" for name, value in first["view"].items())
    title = f"{first['task']} ({view})" if view else first["task"]
    languages = list(dict.fromkeys(row["language"] for row in rows))
    if None in languages and not each_language:
        shown: list[str | None] = [None]
    else:
        shown = languages
    names = [first["system"]] if single else first["systems"]
    how = f"{first['protocol']}, {first['method']}"
    parts: list[RenderableType] = [Text(f"{title} ({how})", style="bold")]
    parts += [Padding(Text(name), (0, 0, 0, 2), expand=False) for name in names]
    for language in shown:
        own = [row for row in rows if row["language"] == language]
        codes = " ".join(code for code in languages if code is not None)
        parts.append(Text(f"  {f'all of {codes}' if language is None else language}", style="italic"))
        parts.append(_single_table(own) if single else _pair_table(own))
    if shown == [None]:
        parts.append(Text("  --languages shows languages by themselves.", style="dim"))
    return [*parts, Text("")]


def _table(*heads: str, left: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, head in enumerate(heads):
        justify: Literal["left", "right"] = "left" if index < left else "right"
        table.add_column(Text(head), justify=justify, no_wrap=index >= left, overflow="fold")
    return table


def _by_attribute(rows: Sequence[Row]) -> Iterable[tuple[str, list[Row]]]:
    return ((name, list(group)) for name, group in groupby(rows, key=lambda row: str(row["attribute"])))


def _large(rows: Sequence[Row], name: str) -> list[Row]:
    """Return the buckets with a score, those of few items only where fewer than two have more."""
    scored = [row for row in rows if row[name] is not None]
    large = [row for row in scored if row["n"] >= LEAST_ITEMS]
    return large if len(large) > 1 else scored


def _single_table(rows: Sequence[Row]) -> Table:
    table = _table("attribute", "", "bucket", rows[0]["metric"], "95 % interval", "n", left=3)
    for name, own in _by_attribute(rows):
        ranked = sorted(_large(own, "value"), key=lambda row: row["value"])
        for word, row in [("worst", ranked[0]), ("best", ranked[-1])] if ranked else []:
            style = "red" if word == "worst" else "green"
            cells = (_percent(row["value"]), _interval(row["ci"]), str(row["n"]))
            table.add_row(
                Text(name if word == "worst" else ""), Text(word, style=style), _bucket(row), *cells
            )
    return table


def _pair_table(rows: Sequence[Row]) -> Table:
    table = _table("attribute", "bucket", "first", "second", "diff.", "95 % interval", "q", "n", left=2)
    for name, own in _by_attribute(rows):
        ranked = sorted(_large(own, "difference"), key=lambda row: row["difference"])
        for number, row in enumerate([ranked[0], ranked[-1]] if ranked else []):
            star = "*" if row["significant"] else ""
            style = "" if not star else "red" if row["difference"] < 0 else "green"
            table.add_row(
                Text(name if number == 0 else ""),
                _bucket(row),
                _percent(row["values"][0]),
                _percent(row["values"][1]),
                Text(f"{100 * row['difference']:+.1f}{star}", style=style),
                _interval(row["ci"]),
                NOTHING if row["q"] is None else f"{row['q']:.3f}",
                str(row["n"]),
            )
    return table


def _bucket(row: Row) -> Text:
    edges = interval_text(row)
    return Text(f"{row['bucket']} {edges}" if edges else row["bucket"])


def _data_tables(rows: Sequence[Row]) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for task, group in groupby(rows, key=lambda row: str(row["task"])):
        parts.append(Text(task, style="bold"))
        table = _table("attribute", "", "n", "mean", "25 %", "50 %", "75 %", "most frequent", left=2)
        ordered = sorted(group, key=lambda row: str(row["attribute"]))
        for name, own in _by_attribute(ordered):
            for number, row in enumerate(own):
                numbers = [NOTHING] * 4
                if row["quartiles"] is not None:
                    numbers = [f"{value:.3g}" for value in (row["mean"], *row["quartiles"])]
                frequent = "" if row["quartiles"] is not None else _frequent(row)
                head = Text(name if number == 0 else "")
                table.add_row(head, row["language"], str(row["n"]), *numbers, Text(frequent))
        parts += [table, Text("")]
    return parts


def _frequent(row: Row) -> str:
    return ", ".join(f"{str(value)[:12]} {count}" for value, count in row["histogram"][:2])


def _percent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.1f}"


def _interval(bounds: Sequence[float] | None) -> str:
    return NOTHING if bounds is None else f"[{100 * bounds[0]:.1f}, {100 * bounds[1]:.1f}]"
