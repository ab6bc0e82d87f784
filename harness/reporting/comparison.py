"""A comparison of runs as tables, and as rows of plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_uppercase
from typing import Any

from harness.analysis.comparison import Comparison, Costs, LanguageComparison, TaskComparison, compare
from harness.analysis.significance import Difference, Scores
from harness.errors import HarnessError
from harness.languages.table import recorded_name
from harness.metrics.metric import Metric
from harness.reporting.column import METRIC_SHORT
from harness.reporting.console import SAMPLE_WARNING
from harness.reporting.heat import SCALES, heat_class
from harness.reporting.model import Block, Field, Fold, Note, Notes, Table, TableRow, rows_of
from harness.reporting.number import NOTHING, p_text, percent, signed, signed_interval
from harness.reporting.remark import counted
from harness.reporting.system_name import short_system, system_names
from harness.reporting.verdict import forest_blocks, has_few_languages, language_forest, verdict_blocks
from harness.storage.run_folder import Run
from harness.table import Table as NamedTable

__all__ = ["comparison_blocks", "comparison_rows", "item_rows", "page_comparison", "task_blocks"]

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


def comparison_blocks(comparison: Comparison) -> list[Block]:
    """Return the verdict, the differences by task, all tasks with their notes, and a legend."""
    return [
        *([Note(SAMPLE_WARNING, "warning")] if comparison.sample else []),
        *verdict_blocks(comparison),
        Note(""),
        *forest_blocks(comparison),
        *(block for task in comparison.tasks for block in (*task_blocks(task), Note(""))),
        Notes(comparison.notes),
        Note(LEGEND, "note"),
    ]


def page_comparison(runs: Sequence[Run], metrics: NamedTable[Metric]) -> list[Block]:
    """Return the comparison of runs for a page; nothing for one run.

    Runs that have no items in common are compared with the first one, each by itself.
    """
    if len(runs) < 2:
        return []
    try:
        return [*_page(compare(runs, metrics), runs), Note(LEGEND, "note")]
    except HarnessError:
        found: list[Block] = []
    for run in runs[1:]:
        try:
            found += _page(compare([runs[0], run], metrics), [runs[0], run])
        except HarnessError as error:
            first, second = system_names([runs[0], run])
            found += [
                Note(f"{second} and {first} are not compared: they have no answered items in common."),
                Fold(title="Why", blocks=[Note(str(error))]),
            ]
    return [*found, Note(LEGEND, "note")]


def _page(comparison: Comparison, runs: Sequence[Run]) -> list[Block]:
    """Return the verdict, the differences around 0, and the details folded."""
    return [
        *verdict_blocks(comparison),
        *forest_blocks(comparison),
        Notes(comparison.notes),
        *(
            Fold(
                title=f"Details: {task.title}",
                soft=f"{task.items:,} common items",
                blocks=[*_languages(comparison, task), *task_blocks(task)],
                heading=True,
            )
            for task in comparison.tasks
        ),
        *(Fold(title=table.title, blocks=[table]) for table in difference_tables(comparison, runs)),
    ]


def _languages(comparison: Comparison, task: TaskComparison) -> list[Block]:
    """Return the differences by language where they are not shown already."""
    return [] if len(comparison.tasks) == 1 and has_few_languages(task) else language_forest(task)


def task_blocks(task: TaskComparison) -> list[Block]:
    """Return what is known of one task: scores and tests by metric, agreement, languages."""
    letters = [_letter(index) for index in range(len(task.systems))]
    names = [
        Field(text=f"{letter}: {name}", short=letter)
        for letter, name in zip(letters, task.systems, strict=True)
    ]
    codes = " ".join(part.language for part in task.languages)
    right, none = (
        sum(len(getattr(part, key)) for part in task.languages) for key in ("all_right", "none_right")
    )
    return [
        Note(f"{task.title}: {task.items:,} common items in {codes}", "heading"),
        Notes([f"{letter} = {name}" for letter, name in zip(letters, task.systems, strict=True)]),
        *(table for scores in task.scores for table in _score_tables(task, scores, names)),
        *_agreement_tables(task, letters, names),
        Fold(title=f"{task.title} by language", blocks=[_language_table(task, names)]),
        Note(f"Wholly right by all: {right} items; by none: {none}."),
        Notes(task.notes),
    ]


def _letter(index: int) -> str:
    rounds, place = divmod(index, len(ascii_uppercase))
    return ascii_uppercase[place] + (str(rounds) if rounds else "")


def _score_tables(task: TaskComparison, scores: Scores, names: Sequence[Field]) -> Iterator[Table]:
    """Yield the scores of a metric and, where it can be tested, its tests."""
    languages = counted(len(task.languages), "language")
    title = f"{task.title}: {task.items:,} common items in {languages}, {scores.metric}"
    yield Table(
        title=title,
        untitled=True,
        heads=(scores.metric, "difference", "95 % interval", *COSTS),
        rows=rows_of(
            (
                name,
                percent(value),
                _difference(own),
                NOTHING if own is None else signed_interval(own.low, own.high),
                *map(str, _costs(cost)),
            )
            for name, value, own, cost in zip(
                names, scores.values, scores.differences, task.costs, strict=True
            )
        ),
    )
    if all(own is None or own.p is None for own in scores.differences):
        return
    yield Table(
        title=f"{title}, tests",
        untitled=True,
        heads=("rank", "p", "Holm", "McNemar", "won", "lost", "even"),
        rows=rows_of(
            (name, _rank(scores, index) + _tie(scores, index), *_tests(scores.differences[index]))
            for index, name in enumerate(names)
        ),
    )


def _costs(cost: Costs) -> tuple[int, int, int]:
    return cost.unparsed, cost.truncated, cost.dropped_shots


def _tests(own: Difference | None) -> tuple[str, ...]:
    if own is None:
        return (NOTHING,) * 6
    counts = (NOTHING if count is None else str(count) for count in (own.won, own.lost, own.even))
    return (*map(p_text, (own.p, own.p_holm, own.mcnemar)), *counts)


def _rank(scores: Scores, index: int) -> str:
    if scores.ranks is None:
        return NOTHING
    low, high = scores.ranks[index]
    return str(low) if low == high else f"{low}-{high}"


def _tie(scores: Scores, index: int) -> str:
    if scores.best is None or not scores.best[index]:
        return " "
    return "?" if scores.out_of_reach is not None and scores.out_of_reach[index] else "="


def _agreement_tables(
    task: TaskComparison, letters: Sequence[str], names: Sequence[Field]
) -> Iterator[Table]:
    for start in range(0, len(letters), AGREEMENT_COLUMNS):
        columns = range(start, min(start + AGREEMENT_COLUMNS, len(letters)))
        pairs = [
            [f"{percent(same[column])}/{percent(right[column])}" for column in columns]
            for same, right in zip(task.agreement.same, task.agreement.right, strict=True)
        ]
        yield Table(
            title=f"{task.title}: share of items with the same answer / that both have right, from {letters[start]}",
            untitled=True,
            corner="same/right",
            heads=tuple(letters[column] for column in columns),
            rows=rows_of((name, *own) for name, own in zip(names, pairs, strict=True)),
        )


def _language_table(task: TaskComparison, names: Sequence[Field]) -> Table:
    metric = task.scores[0].metric
    return Table(
        title=f"{task.title} by language",
        untitled=True,
        heads=("", METRIC_SHORT.get(metric, metric), "diff.", "items", *COSTS, "tokens", "seconds"),
        words=frozenset({0}),
        rows=tuple(
            TableRow(
                label=part.language,
                fields=(
                    name,
                    percent(part.scores[0].values[index]),
                    _difference(part.scores[0].differences[index]),
                    str(len(part.ids)) if index == 0 else "",
                    *map(str, _costs(cost)),
                    NOTHING if cost.tokens is None else f"{cost.tokens:,}",
                    f"{cost.seconds:,.1f}",
                ),
            )
            for part in task.languages
            for index, (name, cost) in enumerate(zip(names, part.costs, strict=True))
        ),
    )


def _difference(own: Difference | None) -> str:
    return NOTHING if own is None else signed(own.value)


def difference_tables(compared: Comparison, runs: Sequence[Run]) -> list[Table]:
    """Return for every further system its differences to the first one as colours: languages against tasks."""
    specs = [spec for run in runs for spec in run.manifest.tasks.values()]
    found: list[Table] = []
    for name in dict.fromkeys(name for task in compared.tasks for name in task.systems[1:]):
        tasks = [task for task in compared.tasks if name in task.systems[1:]]
        codes = sorted({part.language for task in tasks for part in task.languages})
        first = " / ".join(dict.fromkeys(task.systems[0] for task in tasks))
        found.append(
            Table(
                title=f"{short_system(name)} minus {short_system(first)} by language, points",
                corner="language",
                heads=tuple(f"{task.title} {task.scores[0].metric}" for task in tasks),
                rows=rows_of(
                    (
                        f"{recorded_name(code, (own.names for own in specs))} ({code})",
                        *(_coloured(_in_language(task, name, code)) for task in tasks),
                    )
                    for code in codes
                ),
                style="heat",
                ramp="difference",
            )
        )
    return found


def _in_language(task: TaskComparison, name: str, code: str) -> Difference | None:
    for part in task.languages:
        if part.language == code:
            return part.scores[0].differences[task.systems.index(name)]
    return None


def _coloured(own: Difference | None) -> Field:
    """Return a difference with its colour: one within its noise has that of none."""
    if own is None:
        return Field(text=NOTHING, shade="absent")
    reach = 0.0 if own.low is None or own.high is None else max(own.value - own.low, own.high - own.value)
    level = 0.0 if abs(own.value) <= reach else own.value
    low, high = SCALES["difference"]
    return Field(
        text=signed(own.value),
        title=signed_interval(own.low, own.high),
        shade=heat_class(level, low, high, ramp="difference"),
    )


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
