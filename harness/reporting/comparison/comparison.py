"""A comparison of runs as tables, and as rows of plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from string import ascii_uppercase
from typing import Any

from harness.analysis.comparison import LEFT_OUT, Comparison, Costs, TaskComparison, compare
from harness.analysis.significance import Difference, Scores
from harness.errors import HarnessError
from harness.languages.table import recorded_name
from harness.metrics.metric import Metric
from harness.metrics.naming import metric_name
from harness.reporting.blocks.heat import SCALES, heat_class
from harness.reporting.blocks.model import BLANK, Block, Field, Fold, Note, Notes, Table, rows_of
from harness.reporting.blocks.number import p_text, percent, signed, signed_interval
from harness.reporting.blocks.remark import counted
from harness.reporting.comparison.verdict import (
    forest_blocks,
    has_few_languages,
    language_forest,
    verdict_blocks,
)
from harness.reporting.overview.system_name import system_names
from harness.reporting.render.console import SAMPLE_WARNING
from harness.storage.run_folder import Run
from harness.table import NamedTable

AGREEMENT_COLUMNS = 5
"""So many systems fit side by side in 80 columns."""
COSTS = ("unreadable", "cut", "dropped")
TESTS = {"difference": "value", "se": "se", "ci_low": "low", "ci_high": "high", "ci_method": "method"} | {
    "clusters": "groups",
    **{name: name for name in ("discordant", "p", "p_holm", "mcnemar", "won", "lost", "even")},
}
"""Columns of rows, and the fields of `Difference` that they have."""
LEGEND = (
    "Scores x100 on the common items; the task's is the unweighted mean over languages. Differences: A minus the "
    "system of the row, with the paired 95 % interval. p: permutation test over clusters; Holm: adjusted for the "
    "number of systems. Won, lost, even: items of A against that system. Rank: middle 95 % of a joint bootstrap; = not "
    "distinguishable from the best system, ? too few clusters differ from it to decide. Same: share of items with the "
    "same answer. Right: share that both have wholly right. Unreadable and cut (truncated) count common items; dropped "
    "shots, tokens and seconds are of all items that a system was asked."
)


def comparison_blocks(comparison: Comparison) -> list[Block]:
    """Return the verdict, the differences by task, all tasks with their notes, and a legend."""
    return [
        *([Note(SAMPLE_WARNING, "warning")] if comparison.sample else []),
        *verdict_blocks(comparison),
        Note(""),
        *forest_blocks(comparison),
        *(block for task in comparison.tasks for block in (*_task_blocks(task), Note(""))),
        Notes(comparison.notes),
        Note(LEGEND, "note"),
    ]


def page_comparison(runs: Sequence[Run], metrics: NamedTable[Metric]) -> list[Block]:
    """Return the comparison of runs for a page; nothing for one run.

    Runs that have no items in common are compared with the first one, each by itself.
    """
    if len(runs) < 2:
        return []
    blocks: list[Block] = []
    with suppress(HarnessError):
        return [*_page(compare(runs, metrics), runs), Note(LEGEND, "note")]
    for run in runs[1:]:
        try:
            blocks += _page(compare([runs[0], run], metrics), [runs[0], run])
        except HarnessError as error:
            first, second = system_names([runs[0], run])
            blocks += [
                Note(f"{second} and {first} are not compared: they have no answered items in common."),
                Fold(title="Why", blocks=[Note(str(error))]),
            ]
    return [*blocks, Note(LEGEND, "note")]


def _page(comparison: Comparison, runs: Sequence[Run]) -> list[Block]:
    """Return the verdict, the differences around 0, and the details folded."""
    # The differences by language of a task that is alone are shown already.
    is_shown = len(comparison.tasks) == 1 and has_few_languages(comparison.tasks[0])
    return [
        *verdict_blocks(comparison),
        *forest_blocks(comparison),
        Notes(comparison.notes),
        *(
            Fold(
                title=f"Details: {task.title}",
                soft=f"{task.items:,} common items",
                blocks=[*([] if is_shown else language_forest(task)), *_task_blocks(task)],
                heading=True,
            )
            for task in comparison.tasks
        ),
        *(Fold(title=table.title, blocks=[table]) for table in _difference_tables(comparison, runs)),
    ]


def _task_blocks(task: TaskComparison) -> list[Block]:
    """Return the blocks on one task: scores and tests by metric, agreement, languages."""
    rounds = ("", *range(1, len(task.systems)))
    letters = [f"{letter}{number}" for number in rounds for letter in ascii_uppercase][: len(task.systems)]
    lettered = list(zip(letters, task.systems, strict=True))
    names = [Field(text=f"{letter}: {name}", short=letter) for letter, name in lettered]
    codes = " ".join(comparison.language for comparison in task.languages)
    right, none = (
        sum(len(getattr(comparison, key)) for comparison in task.languages)
        for key in ("all_right", "none_right")
    )
    return [
        Note(f"{task.title}: {task.items:,} common items in {codes}", "heading"),
        Notes([f"{letter} = {name}" for letter, name in lettered]),
        *(table for scores in task.scores for table in _score_tables(task, scores, names)),
        *_agreement_tables(task, letters, names),
        Fold(title=f"{task.title} by language", blocks=[_language_table(task, names)]),
        Note(f"Wholly right by all: {right} items; by none: {none}."),
        Notes(task.notes),
    ]


def _score_tables(task: TaskComparison, scores: Scores, names: Sequence[Field]) -> Iterator[Table]:
    """Yield the scores of a metric and, where it can be tested, its tests."""
    languages = counted(len(task.languages), "language")
    title = f"{task.title}: {task.items:,} common items in {languages}, {metric_name(scores.metric)}"
    yield Table(
        title=title,
        untitled=True,
        heads=(metric_name(scores.metric), "diff.", "95 % interval", *COSTS),
        rows=rows_of(
            (name, *_score(scores, index), _interval(scores.differences[index]), *_costs(task.costs[index]))
            for index, name in enumerate(names)
        ),
    )
    if any(difference is not None and difference.p is not None for difference in scores.differences):
        yield Table(
            title=f"{title}, tests",
            untitled=True,
            heads=("rank", "p", "Holm", "McNemar", "won", "lost", "even"),
            rows=rows_of((name, *_tests(scores, index)) for index, name in enumerate(names)),
        )


def _score(scores: Scores, index: int) -> tuple[str, str]:
    difference = scores.differences[index]
    return percent(scores.values[index]), BLANK if difference is None else signed(difference.value)


def _interval(own: Difference | None) -> str:
    return BLANK if own is None else signed_interval(own.low, own.high)


def _costs(cost: Costs) -> tuple[str, str, str]:
    return str(cost.unparsed), str(cost.truncated), str(cost.dropped_shots)


def _tests(scores: Scores, index: int) -> Iterator[str]:
    """Yield the rank of a system and whether it is tied with the best one, then its tests against the first one."""
    low, high = scores.ranks[index] if scores.ranks is not None else (BLANK, BLANK)
    is_tied = scores.best is not None and scores.best[index]
    is_open = scores.out_of_reach is not None and scores.out_of_reach[index]
    yield (f"{low}" if low == high else f"{low}-{high}") + (" " if not is_tied else "?" if is_open else "=")
    difference = scores.differences[index]
    yield from (p_text(getattr(difference, name, None)) for name in ("p", "p_holm", "mcnemar"))
    counts = (getattr(difference, name, None) for name in ("won", "lost", "even"))
    yield from (BLANK if count is None else str(count) for count in counts)


def _agreement_tables(
    task: TaskComparison, letters: Sequence[str], names: Sequence[Field]
) -> Iterator[Table]:
    for start in range(0, len(letters), AGREEMENT_COLUMNS):
        columns = slice(start, start + AGREEMENT_COLUMNS)
        shares = zip(names, task.agreement.same, task.agreement.right, strict=True)
        yield Table(
            title=f"{task.title}: share of items with the same answer / that both have right, from {letters[start]}",
            untitled=True,
            corner="same/right",
            heads=tuple(letters[columns]),
            rows=rows_of(
                (
                    name,
                    *(
                        f"{percent(a)}/{percent(b)}"
                        for a, b in zip(same[columns], right[columns], strict=True)
                    ),
                )
                for name, same, right in shares
            ),
        )


def _language_table(task: TaskComparison, names: Sequence[Field]) -> Table:
    return Table(
        title=f"{task.title} by language",
        untitled=True,
        heads=("", metric_name(task.scores[0].metric), "diff.", "items", *COSTS, "tokens", "seconds"),
        words=frozenset({0}),
        rows=rows_of(
            (
                comparison.language,
                name,
                *_score(comparison.scores[0], index),
                str(len(comparison.ids)) if index == 0 else "",
                *_costs(cost),
                BLANK if cost.tokens is None else f"{cost.tokens:,}",
                f"{cost.seconds:,.1f}",
            )
            for comparison in task.languages
            for index, (name, cost) in enumerate(zip(names, comparison.costs, strict=True))
        ),
    )


def _difference_tables(compared: Comparison, runs: Sequence[Run]) -> list[Table]:
    """Return for every further system the differences of the first one to it as colours: languages against tasks."""
    specs = [spec for run in runs for spec in run.manifest.tasks.values()]
    tables: list[Table] = []
    for name in dict.fromkeys(name for task in compared.tasks for name in task.systems[1:]):
        tasks = [task for task in compared.tasks if name in task.systems[1:]]
        differences = [
            {
                comparison.language: comparison.scores[0].differences[task.systems.index(name)]
                for comparison in task.languages
            }
            for task in tasks
        ]
        codes = sorted({code for by_code in differences for code in by_code})
        first = " / ".join(dict.fromkeys(task.systems[0] for task in tasks))
        tables.append(
            Table(
                title=f"{first} minus {name} by language, points",
                corner="language",
                heads=tuple(f"{task.title} {metric_name(task.scores[0].metric)}" for task in tasks),
                rows=rows_of(
                    (
                        f"{recorded_name(code, (spec.names for spec in specs))} ({code})",
                        *(_coloured(by_code.get(code)) for by_code in differences),
                    )
                    for code in codes
                ),
                style="heat",
                ramp="difference",
            )
        )
    return tables


def _coloured(own: Difference | None) -> Field:
    """Return a difference with its colour: one within its noise has that of none."""
    if own is None:
        return Field(text=BLANK, shade="absent")
    reach = 0.0 if own.low is None or own.high is None else max(own.value - own.low, own.high - own.value)
    level = 0.0 if abs(own.value) <= reach else own.value
    shade = heat_class(level, *SCALES["difference"], ramp="difference")
    return Field(text=signed(own.value), title=_interval(own), shade=shade)


def comparison_rows(tasks: Sequence[TaskComparison]) -> list[dict[str, Any]]:
    """Return one row for every task, language (None for the mean), metric and system; scores are fractions.

    The rows of a task's mean also hold ``same`` and ``right``: by system, the shares of agreement with it.
    """
    return [
        {
            **{"task": task.task, "view": dict(task.view), "language": language, "system": name},
            "metric": scores.metric,
            "value": scores.values[index],
            **{column: getattr(scores.differences[index], field, None) for column, field in TESTS.items()},
            "rank": None if scores.ranks is None else list(scores.ranks[index]),
            "tied_with_best": None if scores.best is None else scores.best[index],
            **asdict(costs[index]),
            "n": sum(len(comparison.ids) for comparison in comparisons),
            "lacking": sum(comparison.missing[index] for comparison in comparisons),
            **{key: sum(getattr(comparison, key) for comparison in comparisons) for key in LEFT_OUT},
            **({} if language else _agreed(task, index)),
        }
        for task in tasks
        for language, comparisons, by_metric, costs in [
            (None, task.languages, task.scores, task.costs),
            *(
                (comparison.language, [comparison], comparison.scores, comparison.costs)
                for comparison in task.languages
            ),
        ]
        for scores in by_metric
        for index, name in enumerate(task.systems)
    ]


def _agreed(task: TaskComparison, index: int) -> dict[str, dict[str, float]]:
    shares = {"same": task.agreement.same, "right": task.agreement.right}
    return {name: dict(zip(task.systems, matrix[index], strict=True)) for name, matrix in shares.items()}


def item_rows(tasks: Sequence[TaskComparison]) -> list[dict[str, Any]]:
    """Return one row for every task and language: the ids of the items that all, and that none, have right."""
    return [
        {
            "task": task.task,
            "view": dict(task.view),
            "language": comparison.language,
            "systems": list(task.systems),
            "metric": comparison.scores[0].metric,
            "all_right": list(comparison.all_right),
            "none_right": list(comparison.none_right),
        }
        for task in tasks
        for comparison in task.languages
    ]
