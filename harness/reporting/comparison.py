"""A comparison of runs as tables for a terminal of 80 columns, and as rows of plain values."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any, Literal

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from harness.analysis.comparison import Comparison, Costs, LanguageComparison, TaskComparison
from harness.analysis.significance import Difference, Scores
from harness.reporting.column import METRIC_SHORT
from harness.reporting.console import SAMPLE_WARNING

__all__ = ["comparison_rows", "item_rows", "render_comparison"]

NOTHING = "-"
AGREEMENT_COLUMNS = 5
"""So many systems fit side by side in 80 columns."""
COSTS = ("unparsed", "truncated", "dropped")
LEGEND = (
    "Scores x100 on the common items; the task's is the unweighted mean over languages. Differences are to A, with "
    "the paired 95 % interval. p: permutation test over clusters against A; Holm: adjusted for the number of "
    "systems. Won, lost, even: items against A. Rank: middle 95 % of a joint bootstrap; = not distinguishable "
    "from the best system, ? too few clusters differ from it to decide. Same: share of items with the same answer. "
    "Right: share that both have wholly right. Unparsed and truncated count common items; dropped shots, tokens and "
    "seconds are of all items that a system was asked."
)


def render_comparison(comparison: Comparison) -> RenderableType:
    """Return all tasks as something rich can print."""
    warning = Panel(Text(SAMPLE_WARNING, style="bold"), box=box.ASCII, expand=False)
    return Group(
        *([warning] if comparison.sample else []),
        *(part for task in comparison.tasks for part in _task(task)),
        *(Text(note) for note in comparison.notes),
        Text(LEGEND, style="dim"),
    )


def _task(task: TaskComparison) -> list[RenderableType]:
    letters = [_letter(index) for index in range(len(task.systems))]
    codes = " ".join(part.language for part in task.languages)
    # Names are shown as Text, since a model's name may hold what rich would read as markup.
    parts: list[RenderableType] = [
        Text(f"{task.title}: {task.items} common items in {codes}", style="bold"),
        *(
            Padding(Text(f"{letter} = {name}"), (0, 0, 0, 2), expand=False)
            for letter, name in zip(letters, task.systems, strict=True)
        ),
        *(
            table
            for scores in task.scores
            for table in (_score_table(scores, task.costs, letters), *_test_tables(scores, letters))
        ),
        *_agreement_tables(task, letters),
        _language_table(task, letters),
        Text(
            f"Wholly right by all: {_count(task, 'all_right')} items; by none: {_count(task, 'none_right')}."
        ),
        *(Padding(Text(note), (0, 0, 0, 2), expand=False) for note in task.notes),
        Text(""),
    ]
    return parts


def _letter(index: int) -> str:
    rounds, place = divmod(index, len(ascii_uppercase))
    return ascii_uppercase[place] + (str(rounds) if rounds else "")


def _count(task: TaskComparison, name: str) -> int:
    return sum(len(getattr(part, name)) for part in task.languages)


def _table(*heads: str, left: int = 1) -> Table:
    """Return a table whose first columns are flush left; only the name of a metric, after them, may fold."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, head in enumerate(heads):
        justify: Literal["left", "right"] = "left" if index < left else "right"
        table.add_column(Text(head, overflow="fold"), justify=justify, no_wrap=index != left)
    return table


def _score_table(scores: Scores, costs: Sequence[Costs], letters: Sequence[str]) -> Table:
    table = _table("", scores.metric, "difference", "95 % interval", *COSTS)
    for letter, value, difference, cost in zip(
        letters, scores.values, scores.differences, costs, strict=True
    ):
        table.add_row(
            letter,
            _percent(value),
            _signed(None if difference is None else difference.value),
            _interval(difference),
            str(cost.unparsed),
            str(cost.truncated),
            str(cost.dropped_shots),
        )
    return table


def _test_tables(scores: Scores, letters: Sequence[str]) -> list[Table]:
    """Return the tests of a metric; nothing for one that cannot be tested."""
    if all(own is None or own.p is None for own in scores.differences):
        return []
    table = _table("", "rank", "p", "Holm", "McNemar", "won", "lost", "even")
    for index, letter in enumerate(letters):
        own = scores.differences[index]
        fields = (
            (NOTHING,) * 6
            if own is None
            else (*map(_p, (own.p, own.p_holm, own.mcnemar)), *map(_number, (own.won, own.lost, own.even)))
        )
        table.add_row(letter, _rank(scores, index) + _tie(scores, index), *fields)
    return [table]


def _rank(scores: Scores, index: int) -> str:
    if scores.ranks is None:
        return NOTHING
    low, high = scores.ranks[index]
    return str(low) if low == high else f"{low}-{high}"


def _tie(scores: Scores, index: int) -> str:
    if scores.best is None or not scores.best[index]:
        return " "
    return "?" if scores.out_of_reach is not None and scores.out_of_reach[index] else "="


def _p(value: float | None) -> str:
    if value is None:
        return NOTHING
    return "<.001" if value < 0.001 else f"{value:.3f}"


def _number(count: int | None) -> str:
    return NOTHING if count is None else str(count)


def _agreement_tables(task: TaskComparison, letters: Sequence[str]) -> list[Table]:
    tables = []
    for start in range(0, len(letters), AGREEMENT_COLUMNS):
        columns = range(start, min(start + AGREEMENT_COLUMNS, len(letters)))
        table = _table("same/right", *(letters[column] for column in columns))
        for row, letter in enumerate(letters):
            same, right = task.agreement.same[row], task.agreement.right[row]
            table.add_row(
                letter, *(f"{_percent(same[column])}/{_percent(right[column])}" for column in columns)
            )
        tables.append(table)
    return tables


def _language_table(task: TaskComparison, letters: Sequence[str]) -> Table:
    metric = task.scores[0].metric
    table = _table(
        "", "", METRIC_SHORT.get(metric, metric), "diff.", "items", *COSTS, "tokens", "seconds", left=2
    )
    for part in task.languages:
        for index, letter in enumerate(letters):
            difference, cost = part.scores[0].differences[index], part.costs[index]
            table.add_row(
                part.language if index == 0 else "",
                letter,
                _percent(part.scores[0].values[index]),
                _signed(None if difference is None else difference.value),
                str(len(part.ids)) if index == 0 else "",
                str(cost.unparsed),
                str(cost.truncated),
                str(cost.dropped_shots),
                NOTHING if cost.tokens is None else f"{cost.tokens:,}",
                f"{cost.seconds:,.1f}",
            )
    return table


def _percent(value: float) -> str:
    return f"{value * 100:.1f}"


def _signed(value: float | None) -> str:
    # Adding zero turns a rounded -0.0 into 0.0.
    return NOTHING if value is None else f"{round(value * 100, 1) + 0.0:+.1f}"


def _interval(difference: Difference | None) -> str:
    if difference is None or difference.low is None or difference.high is None:
        return NOTHING
    return f"{_signed(difference.low)} to {_signed(difference.high)}"


def comparison_rows(tasks: Sequence[TaskComparison]) -> list[dict[str, Any]]:
    """Return one row for every task, language (None for the mean), metric and system; scores are fractions.

    The rows of a task's mean also hold ``same`` and ``right``: by system, the shares of agreement with it.
    """
    rows: list[dict[str, Any]] = []
    for task in tasks:
        for scores in task.scores:
            for index, name in enumerate(task.systems):
                agreed = {
                    "same": dict(zip(task.systems, task.agreement.same[index], strict=True)),
                    "right": dict(zip(task.systems, task.agreement.right[index], strict=True)),
                }
                head = {"task": task.task, "view": dict(task.view), "language": None, "system": name}
                left_out = {
                    "lacking": sum(part.missing[index] for part in task.languages),
                    **{key: sum(getattr(part, key) for part in task.languages) for key in _LEFT_OUT},
                }
                rows.append(
                    {**head, **_values(scores, task.costs, index), "n": task.items, **left_out, **agreed}
                )
        rows += [row for part in task.languages for row in _language_rows(task, part)]
    return rows


_TESTS = ("discordant", "p", "p_holm", "mcnemar", "won", "lost", "even")
_LEFT_OUT = ("differing", "regraded", "unlabelled")


def _language_rows(task: TaskComparison, part: LanguageComparison) -> list[dict[str, Any]]:
    return [
        {
            "task": task.task,
            "view": dict(task.view),
            "language": part.language,
            "system": name,
            **_values(scores, part.costs, index),
            "n": len(part.ids),
            "lacking": part.missing[index],
            **{key: getattr(part, key) for key in _LEFT_OUT},
        }
        for scores in part.scores
        for index, name in enumerate(task.systems)
    ]


def _values(scores: Scores, costs: Sequence[Costs], index: int) -> dict[str, Any]:
    difference, cost = scores.differences[index], costs[index]
    return {
        "metric": scores.metric,
        "value": scores.values[index],
        "difference": None if difference is None else difference.value,
        "se": None if difference is None else difference.se,
        "ci_low": None if difference is None else difference.low,
        "ci_high": None if difference is None else difference.high,
        "ci_method": None if difference is None else difference.method,
        "clusters": None if difference is None else difference.groups,
        **{name: None if difference is None else getattr(difference, name) for name in _TESTS},
        "rank": None if scores.ranks is None else list(scores.ranks[index]),
        "tied_with_best": None if scores.best is None else scores.best[index],
        "unparsed": cost.unparsed,
        "truncated": cost.truncated,
        "dropped_shots": cost.dropped_shots,
        "tokens": cost.tokens,
        "seconds": cost.seconds,
    }


def item_rows(tasks: Sequence[TaskComparison]) -> list[dict[str, Any]]:
    """Return one row for every task and language: the ids of the items that all, and that none, have right."""
    return [
        {
            "task": task.task,
            "view": dict(task.view),
            "language": part.language,
            "systems": list(task.systems),
            "metric": part.scores[0].metric,
            "all_right": list(part.all_right),
            "none_right": list(part.none_right),
        }
        for task in tasks
        for part in task.languages
    ]
