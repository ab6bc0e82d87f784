"""A comparison as papers print it: models against languages, differences with their tests, and sentences to quote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.analysis.comparison import Comparison, TaskComparison
from harness.metrics.metric import Metric, metric_name
from harness.reporting.blocks.chart import DECIDES
from harness.reporting.blocks.model import Block, Field, Note, Notes, Table, TableRow, make_table, rows_of
from harness.reporting.blocks.number import p_text, percent, signed, signed_interval
from harness.reporting.blocks.words import counted
from harness.reporting.comparison.comparison import (
    FEW,
    LEVEL,
    comparison_rows,
    language_levels,
    language_name,
    task_levels,
    verdict_blocks,
)
from harness.reporting.render.console import SAMPLE_WARNING
from harness.reporting.render.text import csv_text, render_latex, render_markdown
from harness.table import NamedTable, grouped

HEADS = ("difference", "95 % interval", "p", "p (Holm)", "items")
MEAN = "mean"
MOST_LANGUAGES = 40
"""Rows of languages in the table of a pair, which is to fit a page."""


def paper_text(compared: Comparison, metrics: NamedTable[Metric], format_name: str) -> str:
    """Return a comparison as ``csv``, ``latex`` or ``markdown``."""
    if format_name == "csv":
        return csv_text(paper_rows(compared, metrics))
    blocks = paper_blocks(compared, metrics)
    return render_latex(blocks) if format_name == "latex" else render_markdown(blocks)


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
    metric, is_alone = task.scores[0].metric, len(task.languages) == 1
    of_languages = {name: language_levels(task, index) for index, name in enumerate(task.systems)}
    groups = grouped((row["language"], row) for row in comparison_rows([task]) if row["metric"] == metric)
    mean = groups.pop(None)
    best = max if metric not in metrics or metrics.get(metric).higher_is_better else min
    rows = []
    for code, group in [*groups.items(), *([] if is_alone else [(None, mean)])]:
        highest = percent(best(row["value"] for row in group))
        for row in group:
            of_mean = code is None or is_alone
            name = row["system"]
            p = levels.get((task.title, name)) if of_mean else of_languages[name].get(code)
            rows.append(
                {
                    **{column: row[column] for column in ("task", "view", "metric", "language", "system")},
                    "view": json.dumps(row["view"], sort_keys=True),
                    **{"items": row["n"], "value": row["value"], "best": percent(row["value"]) == highest},
                    **{column: row[column] for column in ("difference", "ci_low", "ci_high", "p")},
                    **{"p_holm": p, "significant": None if p is None else p <= LEVEL},
                }
            )
    return rows


def paper_blocks(compared: Comparison, metrics: NamedTable[Metric]) -> list[Block]:
    """Return the sentences of the verdict, and for every task its scores and the differences with their tests."""
    levels = task_levels(compared)
    blocks: list[Block] = [Note(SAMPLE_WARNING, "warning")] if compared.sample else []
    verdict = verdict_blocks(compared)
    blocks += [Notes([block.text]) if isinstance(block, Note) else block for block in verdict]
    rows = {task.title: _task_rows(task, levels, metrics) for task in compared.tasks}
    if len(rows) > 1 and {len(task.systems) for task in compared.tasks} == {2}:
        pairs = dict.fromkeys(task.systems for task in compared.tasks)
        blocks += [_pair([task for task in compared.tasks if task.systems == pair], rows) for pair in pairs]
        blocks += [Notes(task.notes) for task in compared.tasks]
    else:
        for task in compared.tasks:
            task_rows = rows[task.title]
            blocks += [_scores(task, task_rows), *_differences(task, task_rows), Notes(task.notes)]
    return [*blocks, Notes(compared.notes)]


def _scores(task: TaskComparison, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return systems against languages; languages against systems where there are many languages."""
    systems = list(task.systems)
    codes = list(dict.fromkeys(row["language"] for row in rows))
    fields = [_score(row, "*" if row["significant"] else "") for row in rows]
    grid = [fields[at : at + len(systems)] for at in range(0, len(fields), len(systems))]
    where = f"{counted(task.items, 'common item')} in {counted(len(task.languages), 'language')}"
    title = (
        f"{task.title}: {metric_name(task.scores[0].metric)} times 100 on {where}. Bold: the best score. "
        f"*: differs from {systems[0]} (p ≤ .05 after Holm)."
    )
    if len(task.languages) > FEW:
        labels, heads, corner = [_language(code) for code in codes], systems, "language"
    else:
        labels, heads, corner = systems, [code or MEAN for code in codes], "model"
        grid = [list(column) for column in zip(*grid, strict=True)]
    table_rows = rows_of((label, *cells) for label, cells in zip(labels, grid, strict=True))
    return Table(title=title, corner=corner, heads=tuple(heads), rows=table_rows)


def _score(row: Mapping[str, Any], star: str = "") -> Field:
    return Field(text=percent(row["value"]) + star, style="best" if row["best"] else "")


def _pair(tasks: Sequence[TaskComparison], rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> Table:
    """Return all tasks of one pair of systems: their means, and the languages under them where these are few."""
    first, second = tasks[0].systems
    has_languages = sum(len(task.languages) for task in tasks) <= MOST_LANGUAGES
    table_rows: list[TableRow] = []
    for task in tasks:
        *languages, mean = _difference_rows(rows[task.title], first, second)
        task_rows = [replace(mean, label=f"{task.title} {metric_name(task.scores[0].metric)}")]
        task_rows += [replace(row, depth=1) for row in languages if has_languages]
        table_rows += [*task_rows[:-1], replace(task_rows[-1], ends=has_languages and task is not tasks[-1])]
    below = "; below, its languages, with p after Holm over these" if has_languages else ""
    title = (
        f"{first} minus {second}, times 100: the mean of every task, with p after Holm "
        f"over tasks{below}. Bold: the better score. {DECIDES}"
    )
    return make_table(title, ("task", first, second, *HEADS), table_rows)


def _differences(task: TaskComparison, rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return for every further system the differences of the first one to it by language."""
    first, *further = task.systems
    metric = metric_name(task.scores[0].metric)
    return [
        make_table(
            f"{task.title}: {first} minus {name}, {metric} times 100. {DECIDES}",
            ("language", first, name, *HEADS),
            _difference_rows(rows, first, name),
        )
        for name in further
    ]


def _difference_rows(rows: Sequence[Mapping[str, Any]], first: str, second: str) -> list[TableRow]:
    """Return the scores of two systems and their difference by language."""
    firsts, seconds = ([row for row in rows if row["system"] == name] for name in (first, second))
    return [
        TableRow(
            label=_language(row["language"]),
            fields=(
                _score(first_row),
                _score(row),
                signed(row["difference"]),
                signed_interval(row["ci_low"], row["ci_high"]),
                p_text(row["p"]),
                p_text(row["p_holm"]),
                f"{row['items']:,}",
            ),
        )
        for first_row, row in zip(firsts, seconds, strict=True)
    ]


def _language(code: str | None) -> str:
    return MEAN if code is None else language_name(code)
