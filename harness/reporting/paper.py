"""A comparison as papers print it: models against languages, differences with their tests, and sentences to quote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.analysis.comparison import Comparison, TaskComparison
from harness.analysis.significance import Scores
from harness.languages.table import known_languages
from harness.metrics.metric import Metric
from harness.reporting.console import SAMPLE_WARNING
from harness.reporting.latex import render_latex
from harness.reporting.markdown import render_markdown
from harness.reporting.model import Block, Field, Note, Notes, Table, TableRow
from harness.reporting.number import p_text, percent, signed, signed_interval
from harness.reporting.remark import counted
from harness.reporting.rows import csv_text
from harness.reporting.system_name import short_system
from harness.reporting.verdict import FEW, LEVEL, language_levels, task_levels, verdict_blocks
from harness.table import Table as NamedTable

__all__ = ["PAPER_FORMATS", "paper_blocks", "paper_rows", "paper_text"]

PAPER_FORMATS = {"latex": ".tex", "markdown": ".md", "csv": ".csv"}
"""Formats of `paper_text`, with the suffixes of their files."""
MEAN = "mean"


def paper_text(compared: Comparison, metrics: NamedTable[Metric], format_name: str) -> str:
    """Return a comparison in one of `PAPER_FORMATS`."""
    if format_name == "csv":
        return csv_text(paper_rows(compared, metrics))
    blocks = paper_blocks(compared, metrics)
    return render_latex(blocks, fitted=True) if format_name == "latex" else render_markdown(blocks)


def paper_rows(compared: Comparison, metrics: NamedTable[Metric]) -> list[dict[str, Any]]:
    """Return one row for every task, language (None for the mean) and system, by the first metric of the task.

    Scores are fractions. ``p_holm`` of a mean is adjusted over tasks and systems, as in the verdict; that of a language
    over the languages of the task.
    """
    levels = task_levels(compared)
    return [row for task in compared.tasks for row in _task_rows(task, levels, metrics)]


def _task_rows(
    task: TaskComparison, levels: Mapping[tuple[str, str], float | None], metrics: NamedTable[Metric]
) -> list[dict[str, Any]]:
    of_means = [levels.get((task.title, name)) for name in task.systems]
    alone = len(task.languages) == 1
    of_languages = [language_levels(task, place) for place in range(len(task.systems))]
    parts: list[tuple[str | None, Scores, int, Sequence[float | None]]] = [
        (
            part.language,
            part.scores[0],
            len(part.ids),
            of_means if alone else [own.get(part.language) for own in of_languages],
        )
        for part in task.languages
    ]
    rises = task.scores[0].metric not in metrics or metrics.get(task.scores[0].metric).higher_is_better
    if not alone:
        parts.append((None, task.scores[0], task.items, of_means))
    return [
        {
            "task": task.task,
            "view": json.dumps(dict(task.view), sort_keys=True),
            "metric": scores.metric,
            "language": language,
            "system": name,
            "items": items,
            "value": scores.values[place],
            "best": percent(scores.values[place]) == percent((max if rises else min)(scores.values)),
            "difference": None if (own := scores.differences[place]) is None else own.value,
            "ci_low": None if own is None else own.low,
            "ci_high": None if own is None else own.high,
            "p": None if own is None else own.p,
            "p_holm": (p := None if own is None else adjusted[place]),
            "significant": None if p is None else p <= LEVEL,
        }
        for language, scores, items, adjusted in parts
        for place, name in enumerate(task.systems)
    ]


def paper_blocks(compared: Comparison, metrics: NamedTable[Metric]) -> list[Block]:
    """Return the sentences of the verdict, and for every task its scores and the differences with their tests."""
    levels = task_levels(compared)
    found: list[Block] = [Note(SAMPLE_WARNING, "warning")] if compared.sample else []
    for block in verdict_blocks(compared):
        if isinstance(block, Note | Notes):
            found.append(Notes([block.text]) if isinstance(block, Note) else block)
    for task in compared.tasks:
        rows = _task_rows(task, levels, metrics)
        found += [_scores(task, rows), *_differences(task, rows), Notes(task.notes)]
    return [*found, Notes(compared.notes)]


def _scores(task: TaskComparison, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return systems against languages; languages against systems where there are many languages."""
    systems = [short_system(name) for name in task.systems]
    codes = list(dict.fromkeys(row["language"] for row in rows))
    fields = [
        Field(
            text=percent(row["value"]) + ("*" if row["significant"] else ""),
            style="best" if row["best"] else "",
        )
        for row in rows
    ]
    grid = [fields[at : at + len(systems)] for at in range(0, len(fields), len(systems))]
    where = f"{counted(task.items, 'common item')} in {counted(len(task.languages), 'language')}"
    title = (
        f"{task.title}: {task.scores[0].metric} times 100 on {where}. Bold: the best score. "
        f"*: differs from {systems[0]} (p ≤ .05 after Holm)."
    )
    if len(task.languages) > FEW:
        labels, heads, corner = [_language(code) for code in codes], systems, "language"
    else:
        labels, heads, corner = systems, [code or MEAN for code in codes], "model"
        grid = [list(column) for column in zip(*grid, strict=True)]
    rows_shown = [TableRow(label=label, fields=tuple(own)) for label, own in zip(labels, grid, strict=True)]
    return Table(title=title, corner=corner, heads=tuple(heads), rows=tuple(rows_shown))


def _differences(task: TaskComparison, rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return for every further system its differences to the first one by language."""
    names = [short_system(name) for name in task.systems]
    return [
        Table(
            title=f"{task.title}: {short} minus {names[0]}, {task.scores[0].metric} times 100",
            corner="language",
            heads=(names[0], short, "difference", "95 % interval", "p", "p (Holm)", "items"),
            rows=tuple(
                _difference(first, own)
                for first, own in zip(_of(rows, task.systems[0]), _of(rows, name), strict=True)
            ),
        )
        for name, short in zip(task.systems[1:], names[1:], strict=True)
    ]


def _of(rows: Sequence[Mapping[str, Any]], system: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["system"] == system]


def _difference(first: Mapping[str, Any], own: Mapping[str, Any]) -> TableRow:
    return TableRow(
        label=_language(own["language"]),
        fields=(
            percent(first["value"]),
            percent(own["value"]),
            signed(own["difference"]),
            signed_interval(own["ci_low"], own["ci_high"]),
            p_text(own["p"]),
            p_text(own["p_holm"]),
            f"{own['items']:,}",
        ),
    )


def _language(code: str | None) -> str:
    table = known_languages()
    return MEAN if code is None else f"{table.get(code).name} ({code})" if code in table else code
