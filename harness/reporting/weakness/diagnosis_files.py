"""A diagnosis as files: edges of the buckets, a grid of languages by attributes, rows of plain values, and a figure.

The tables and figures are those of XTREME-R's nuanced evaluation: Tables 25 and 26 (edges), 6 and 27 to 29 (grid).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from harness.analysis.diagnosis import Diagnosis
from harness.errors import UsageError
from harness.reporting.blocks.chart import Bar, BarChart
from harness.reporting.blocks.model import BLANK, Block, Note, Notes, Table, make_table
from harness.reporting.blocks.number import percent, signed
from harness.reporting.render.console import SAMPLE_WARNING
from harness.reporting.render.page import Figure, text_width
from harness.reporting.render.text import csv_text, render_latex, render_markdown
from harness.reporting.weakness.diagnosis import (
    Row,
    bucket_ends,
    diagnosis_blocks,
    edges_text,
    of_task,
    systems_of,
)
from harness.table import grouped

STAR = "*: q <= 0.05 after Benjamini and Hochberg over all buckets, with 30 items or more."


def diagnosis_text(diagnosis: Diagnosis, format_name: str) -> str:
    """Return a diagnosis as ``csv`` (a line per bucket), or its tables as ``latex`` or ``markdown``."""
    if format_name == "csv":
        return csv_text([_flat(row) for row in diagnosis.rows(diagnosis.kind)])
    blocks = diagnosis_blocks(diagnosis) if diagnosis.kind == "data" else list(_paper_blocks(diagnosis))
    return render_latex(blocks) if format_name == "latex" else render_markdown(blocks)


def _flat(row: Row) -> dict[str, Any]:
    """Return a row whose lists and mappings are JSON."""
    return {
        name: json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list | tuple) else value
        for name, value in row.items()
    }


def _paper_blocks(diagnosis: Diagnosis) -> Iterator[Block]:
    if diagnosis.sample:
        yield Note(SAMPLE_WARNING, "warning")
    for title, rows in _groups(diagnosis):
        yield _grid(title, rows, single=diagnosis.kind == "single")
        yield from _edges(title, rows)
    yield Notes([*diagnosis.notes, STAR])


def _groups(diagnosis: Diagnosis) -> Iterator[tuple[str, list[Row]]]:
    """Yield the buckets of single languages of every task, with the task and its systems."""
    for _, group in groupby(diagnosis.rows(diagnosis.kind), key=of_task):
        rows: list[Row] = [row for row in group if row["language"] is not None]
        if rows:
            view = "".join(f", {name}={value}" for name, value in rows[0]["view"].items())
            yield f"{rows[0]['task']}{view}: {' and '.join(systems_of(rows[0]))}", rows


def _by(rows: Sequence[Row], name: str) -> dict[str, list[Row]]:
    return grouped((row[name], row) for row in rows)


def _grid(title: str, rows: Sequence[Row], *, single: bool) -> Table:
    attributes = list(_by(rows, "attribute"))
    caption = "worst and best bucket" if single else "first minus second, lowest and highest bucket"
    groups = grouped(((row["language"], row["attribute"]), row) for row in rows)
    lines = [
        (language, *(_ends(groups.get((language, name), ()), single=single) for name in attributes))
        for language in _by(rows, "language")
    ]
    heads = ("language", *attributes)
    return make_table(f"{title}, {caption}", heads, lines, words=range(len(attributes)))


def _ends(rows: Sequence[Row], *, single: bool) -> str:
    ends = bucket_ends(rows, "value" if single else "difference")
    texts = [
        f"{row['bucket']} {percent(row['value']) if single else signed(row['difference'])}"
        + ("*" if row["significant"] else "")
        for row in ends
    ]
    return " / ".join(dict.fromkeys(texts)) or BLANK


def _edges(title: str, rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the edges of attributes that are numbers, by language."""
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        if edges := edges_text(row):
            lines.setdefault((row["language"], row["attribute"]), {})[row["bucket"]] = edges
    buckets = list(dict.fromkeys(name for edges in lines.values() for name in edges))
    if lines:
        table_rows = [
            (language, attribute, *(edges.get(name, BLANK) for name in buckets))
            for (language, attribute), edges in lines.items()
        ]
        heads = ("language", "attribute", *buckets)
        yield make_table(f"{title}, edges of the buckets", heads, table_rows, words={0})


def diagnosis_figure(diagnosis: Diagnosis) -> Figure:
    """Return the buckets as bars with 95 % intervals: a row of charts per language, a chart per attribute.

    Bars are scores from 0 to 100, or differences of two systems, of which those below 0 have a colour of their own.

    Raises `UsageError` where the diagnosis has no buckets: it is one of data.
    """
    if diagnosis.kind == "data":
        raise UsageError(
            "--data-only has no figure: it shows no scores.", hint="Give --format csv, latex or json."
        )
    single = diagnosis.kind == "single"
    rows: list[str | list[BarChart]] = []
    for heading, group in _groups(diagnosis):
        rows.append(heading)
        for language, buckets in _by(group, "language").items():
            attributes = _by(buckets, "attribute").items()
            rows.append([_bars(f"{language}: {name}", own, single) for name, own in attributes])
    title = "Scores by bucket" if single else "Differences by bucket, first minus second"
    return Figure(title=title, rows=rows, sample=diagnosis.sample)


def _bars(title: str, rows: Sequence[Row], single: bool) -> BarChart:
    bars = [_bar(row, row["value" if single else "difference"]) for row in rows]
    label = 12 + round(max(text_width(bar.label) for bar in bars))
    reach = 100.0 if single else max(abs(end or 0) for bar in bars for end in (bar.value, bar.low, bar.high))
    low = 0.0 if single else -reach
    return BarChart(title=title, bars=tuple(bars), low=low, high=reach, label=label, width=label + 180)


def _bar(row: Row, value: float | None) -> Bar:
    value, low, high = (None if end is None else 100 * end for end in (value, *(row["ci"] or (None, None))))
    return Bar(label=str(row["bucket"]), value=value, low=low, high=high, group=int((value or 0) < 0))
