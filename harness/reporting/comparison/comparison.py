"""A comparison of runs: its verdict in a sentence, its differences around 0, its tables, and rows of plain values.

The smallest differences that a plan could detect are a table of the same kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from string import ascii_uppercase
from typing import Any

from harness.analysis.comparison import LEFT_OUT, Comparison, TaskComparison, compare
from harness.analysis.plan_estimates import Detectable
from harness.analysis.significance import Difference, Scores
from harness.errors import HarnessError
from harness.languages.table import known_languages, recorded_name
from harness.metrics.metric import Metric, metric_name
from harness.reporting.blocks.chart import DECIDES, ForestChart, ForestRow, strip
from harness.reporting.blocks.model import (
    BLANK,
    Block,
    Charts,
    Field,
    Fold,
    Note,
    Notes,
    Table,
    TableRow,
    make_table,
    rows_of,
    table_of,
)
from harness.reporting.blocks.number import (
    SCALES,
    heat_class,
    interval_text,
    level_text,
    p_text,
    percent,
    signed,
    signed_interval,
)
from harness.reporting.blocks.words import counted, legend
from harness.reporting.overview.column import system_names
from harness.reporting.render.console import SAMPLE_WARNING
from harness.statistics import adjusted
from harness.storage.run_folder import Run
from harness.table import NamedTable, grouped

AGREEMENT_COLUMNS = 5
"""So many systems fit side by side in 80 columns."""
_Row = Mapping[str, Any]
_Columns = Mapping[str, Callable[[_Row], str | Field]]
TESTS = {"difference": "value", "se": "se", "ci_low": "low", "ci_high": "high", "ci_method": "method"} | {
    "clusters": "groups",
    **{name: name for name in ("discordant", "p", "p_holm", "mcnemar", "won", "lost", "even")},
}
"""Columns of rows, and the fields of `Difference` that they have."""
SCORE_COLUMNS: _Columns = {
    "diff.": lambda row: signed(row["difference"]),
    "95 % interval": lambda row: signed_interval(row["ci_low"], row["ci_high"]),
}
COST_COLUMNS: _Columns = {
    "unreadable": lambda row: str(row["unparsed"]),
    "cut": lambda row: str(row["truncated"]),
    "dropped": lambda row: str(row["dropped_shots"]),
}
TEST_COLUMNS: _Columns = {
    "p": lambda row: p_text(row["p"]),
    "Holm": lambda row: p_text(row["p_holm"]),
    "McNemar": lambda row: p_text(row["mcnemar"]),
    "won": lambda row: _count(row["won"]),
    "lost": lambda row: _count(row["lost"]),
    "even": lambda row: _count(row["even"]),
}
LEVEL = 0.05
FEW = 16
"""Languages that are shown under a task that is alone."""
TASKS = 5
"""Tasks that have a sentence of their own, those with the largest differences."""


def comparison_blocks(comparison: Comparison) -> list[Block]:
    """Return the verdict, the differences by task, all tasks with their notes, and a legend."""
    return [
        *([Note(SAMPLE_WARNING, "warning")] if comparison.sample else []),
        *verdict_blocks(comparison),
        Note(""),
        *forest_blocks(comparison),
        *(block for task in comparison.tasks for block in (*_task_blocks(task), Note(""))),
        Notes(comparison.notes),
        Note(legend("comparison"), "note"),
    ]


def page_comparison(runs: Sequence[Run], metrics: NamedTable[Metric]) -> list[Block]:
    """Return the comparison of runs for a page; nothing for one run.

    Runs that have no items in common are compared with the first one, each by itself.
    """
    if len(runs) < 2:
        return []
    blocks: list[Block] = []
    with suppress(HarnessError):
        return [*_page(compare(runs, metrics), runs), Note(legend("comparison"), "note")]
    for run in runs[1:]:
        try:
            blocks += _page(compare([runs[0], run], metrics), [runs[0], run])
        except HarnessError as error:
            first, second = system_names([runs[0], run])
            blocks += [
                Note(f"{second} and {first} are not compared: they have no answered items in common."),
                Fold(title="Why", blocks=[Note(str(error))]),
            ]
    return [*blocks, Note(legend("comparison"), "note")]


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
    names = {name: Field(text=f"{letter}: {name}", short=letter) for letter, name in lettered}
    codes = " ".join(comparison.language for comparison in task.languages)
    right = sum(len(comparison.all_right) for comparison in task.languages)
    none = sum(len(comparison.none_right) for comparison in task.languages)
    rows = comparison_rows([task])
    return [
        Note(f"{task.title}: {task.items:,} common items in {codes}", "heading"),
        Notes([f"{letter} = {name}" for letter, name in lettered]),
        *(table for scores in task.scores for table in _score_tables(task, scores, rows, names)),
        *_agreement_tables(task, letters, names),
        Fold(title=f"{task.title} by language", blocks=[_language_table(task, rows, names)]),
        Note(f"Wholly right by all: {right} items; by none: {none}."),
        Notes(task.notes),
    ]


def _score_tables(
    task: TaskComparison, scores: Scores, rows: Sequence[_Row], names: Mapping[str, Field]
) -> Iterator[Table]:
    """Yield the scores of a metric and, where it can be tested, its tests."""
    languages = counted(len(task.languages), "language")
    title = f"{task.title}: {task.items:,} common items in {languages}, {metric_name(scores.metric)}"
    means = [row for row in rows if row["language"] is None and row["metric"] == scores.metric]
    value: _Columns = {"": lambda row: names[row["system"]], metric_name(scores.metric): _value}
    yield table_of(title, means, {**value, **SCORE_COLUMNS, **COST_COLUMNS}, untitled=True)
    if any(row["p"] is not None for row in means):
        rank: _Columns = {"": lambda row: names[row["system"]], "rank": lambda row: _rank(row, task, scores)}
        yield table_of(f"{title}, tests", means, {**rank, **TEST_COLUMNS}, untitled=True)


def _value(row: _Row) -> str:
    return percent(row["value"])


def _count(count: int | None) -> str:
    return BLANK if count is None else str(count)


def _rank(row: _Row, task: TaskComparison, scores: Scores) -> str:
    """Return the rank of a system, and whether it is tied with the best one."""
    low, high = row["rank"] or (BLANK, BLANK)
    is_open = scores.out_of_reach is not None and scores.out_of_reach[task.systems.index(row["system"])]
    sign = " " if not row["tied_with_best"] else "?" if is_open else "="
    return f"{low}{sign}" if low == high else f"{low}-{high}{sign}"


def _agreement_tables(
    task: TaskComparison, letters: Sequence[str], names: Mapping[str, Field]
) -> Iterator[Table]:
    same, right = task.agreement.same, task.agreement.right
    labels = [*names.values()]

    def share(at: int, other: int) -> str:
        return f"{percent(same[at][other])}/{percent(right[at][other])}"

    for start in range(0, len(letters), AGREEMENT_COLUMNS):
        columns: dict[str, Callable[[int], str | Field]] = {"same/right": lambda at: labels[at]}
        others = range(len(letters))[start : start + AGREEMENT_COLUMNS]
        columns |= {letters[other]: partial(share, other=other) for other in others}
        title = (
            f"{task.title}: share of items with the same answer / that both have right, from {letters[start]}"
        )
        yield table_of(title, range(len(labels)), columns, untitled=True)


def _language_table(task: TaskComparison, rows: Sequence[_Row], names: Mapping[str, Field]) -> Table:
    metric, first = task.scores[0].metric, task.systems[0]
    columns: _Columns = {
        "language": lambda row: row["language"],
        "": lambda row: names[row["system"]],
        metric_name(metric): _value,
        "diff.": SCORE_COLUMNS["diff."],
        "items": lambda row: str(row["n"]) if row["system"] == first else "",
        **COST_COLUMNS,
        "tokens": lambda row: BLANK if row["tokens"] is None else f"{row['tokens']:,}",
        "seconds": lambda row: f"{row['seconds']:,.1f}",
    }
    of_languages = [row for row in rows if row["language"] is not None and row["metric"] == metric]
    table = table_of(f"{task.title} by language", of_languages, columns, words=[""], untitled=True)
    return replace(table, corner="")


def _difference_tables(compared: Comparison, runs: Sequence[Run]) -> Iterator[Table]:
    """Yield for every further system the differences of the first one to it as colours: languages against tasks."""
    specs = [spec for run in runs for spec in run.manifest.tasks.values()]
    for name in dict.fromkeys(name for task in compared.tasks for name in task.systems[1:]):
        tasks = [task for task in compared.tasks if name in task.systems[1:]]
        differences = [_by_language(task, task.systems.index(name)) for task in tasks]
        first = " / ".join(dict.fromkeys(task.systems[0] for task in tasks))
        yield Table(
            title=f"{first} minus {name} by language, points",
            corner="language",
            heads=tuple(f"{task.title} {metric_name(task.scores[0].metric)}" for task in tasks),
            rows=rows_of(
                (
                    f"{recorded_name(code, (spec.names for spec in specs))} ({code})",
                    *(_coloured(by_code.get(code)) for by_code in differences),
                )
                for code in sorted({code for by_code in differences for code in by_code})
            ),
            style="heat",
            ramp="difference",
        )


def _by_language(task: TaskComparison, index: int) -> dict[str, Difference | None]:
    """Return the difference of the first system to another one by language, in the task's first metric."""
    return {comparison.language: comparison.scores[0].differences[index] for comparison in task.languages}


def _coloured(own: Difference | None) -> Field:
    """Return a difference with its colour: one within its noise has that of none."""
    if own is None:
        return Field(text=BLANK, shade="absent")
    reach = 0.0 if own.low is None or own.high is None else max(own.value - own.low, own.high - own.value)
    level = 0.0 if abs(own.value) <= reach else own.value
    shade = heat_class(level, *SCALES["difference"], ramp="difference")
    return Field(text=signed(own.value), title=signed_interval(own.low, own.high), shade=shade)


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


_LevelRow = tuple[ForestRow, float | None]
"""A row, and its p after Holm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """A further system against the first one in one task, by the task's first metric."""

    task: TaskComparison
    index: int
    """Of the further system."""
    difference: Difference
    p: float | None = None
    """After Holm over all tasks and systems."""

    @property
    def names(self) -> tuple[str, str]:
        """The first and the further system."""
        return self.task.systems[0], self.task.systems[self.index]

    @property
    def direction(self) -> str:
        """Where the first system is."""
        return "even" if not _is_decided(self.p) else "above" if self.difference.value > 0 else "below"


def _is_decided(p: float | None) -> bool:
    """Return whether systems differ."""
    return p is not None and p <= LEVEL


def _by_systems(compared: Comparison) -> dict[tuple[str, str], list[_Pair]]:
    """Return the pairs by the names of the two systems, corrected together."""
    pairs = [
        _Pair(task=task, index=index, difference=difference)
        for task in compared.tasks
        for index in _places(task)
        if (difference := task.scores[0].differences[index]) is not None
    ]
    # Conditions of the first model itself matter only where nothing else is compared.
    pairs = [pair for pair in pairs if len(set(map(_model, pair.names))) > 1] or pairs
    levels = adjusted([pair.difference.p for pair in pairs])
    return grouped((_title(pair), replace(pair, p=p)) for pair, p in zip(pairs, levels, strict=True))


def _title(pair: _Pair) -> tuple[str, str]:
    """Return the models of a pair or, where they are the same, the systems."""
    first, second = map(_model, pair.names)
    return (first, second) if first != second else pair.names


def task_levels(compared: Comparison) -> dict[tuple[str, str], float | None]:
    """Return p by task and further system, after Holm over all that the verdict compares; others have none."""
    pairs = (pair for group in _by_systems(compared).values() for pair in group)
    return {(pair.task.title, pair.names[1]): pair.p for pair in pairs}


def language_levels(task: TaskComparison, index: int) -> dict[str, float | None]:
    """Return p of a further system by language, after Holm over the languages of the task."""
    differences = _by_language(task, index)
    levels = {code: difference.p for code, difference in differences.items() if difference is not None}
    return dict(zip(levels, adjusted([*levels.values()]), strict=True))


def _places(task: TaskComparison) -> list[int]:
    """Return the systems that the first one is compared with in a verdict.

    Of another model that has several in this task, those of the first one's own conditions, if there are any; other
    conditions of the first model itself only where there is no other model.
    """
    first, *further = task.systems
    rivals = [name for name in further if _model(name) != _model(first)]
    alike = [name for name in rivals if name.partition(" (")[2] == first.partition(" (")[2]]
    models = set(map(_model, alike))
    compared = [name for name in rivals or further if name in alike or _model(name) not in models]
    return [task.systems.index(name) for name in compared]


def _model(system: str) -> str:
    return system.partition(" (")[0]


def verdict_blocks(compared: Comparison) -> list[Block]:
    """Return for every further system what the comparison says: one sentence, and one for its largest differences."""
    blocks: list[Block] = []
    for names, pairs in _by_systems(compared).items():
        texts = list(_sentences(names, pairs))
        blocks += [Note(texts[0], "heading"), *([Notes(texts[1:], "findings")] if texts[1:] else [])]
    return blocks


def _sentences(names: tuple[str, str], pairs: Sequence[_Pair]) -> Iterator[str]:
    if len(pairs) > 1:
        first, second = names
        counts = Counter("untested" if pair.p is None else pair.direction for pair in pairs)
        ways = " and ".join(f"{way} {second} on {counts[way]}" for way in ("above", "below") if counts[way])
        clauses = [f"Of {len(pairs)} tasks", *([f"{first} is {ways}"] if ways else [])]
        clauses += [f"the two are not distinguishable on {counts['even']}"] if counts["even"] else []
        clauses += [f"{counts['untested']} cannot be tested"] if counts["untested"] else []
        yield f"{', '.join(clauses)} (p after Holm over tasks and systems)."
    for pair in sorted(pairs, key=lambda own: -abs(own.difference.value))[:TASKS]:
        yield _sentence(pair)


def _sentence(pair: _Pair) -> str:
    (first, second), difference, title = pair.names, pair.difference, pair.task.title
    where = f"{counted(pair.task.items, 'item')} in {counted(len(pair.task.languages), 'language')}"
    ends = None if difference.low is None or difference.high is None else (difference.low, difference.high)
    if pair.p is None:
        return f"{title}: {first} minus {second} is {difference.value * 100:+.1f} points, without a test; {where}."
    level = level_text("p", pair.p)
    if pair.direction == "even":
        interval = "no interval" if ends is None else signed_interval(*ends)
        excluded = ends is not None and (ends[0] > 0 or ends[1] < 0)
        but = " The interval is beyond 0, but the corrected test does not decide." if excluded else ""
        return (
            f"{title}: {first} and {second} are not distinguishable: {difference.value * 100:+.1f} points "
            f"({interval}), {level}, {where}.{but}"
        )
    if ends is not None and difference.value < 0:
        ends = (-ends[1], -ends[0])
    interval = "" if ends is None else f" ({interval_text(ends)})"
    points = f"{abs(difference.value) * 100:.1f} points {pair.direction}"
    return f"{title}: {first} is {points} {second}{interval}, {level}, {where}."


def forest_blocks(compared: Comparison) -> list[Block]:
    """Return for every further system its differences by task; by language too where there is one task."""
    charts: list[Block] = []
    for names, pairs in _by_systems(compared).items():
        rows = [_level_row(pair.task.title, pair.difference, pair.task.items, pair.p) for pair in pairs]
        if len(pairs) == 1 and has_few_languages(pairs[0].task):
            rows += _language_rows(pairs[0].task, pairs[0].index)
        charts.append(_forest(f"{names[0]} minus {names[1]}, points", rows, names))
    return charts


def has_few_languages(task: TaskComparison) -> bool:
    """Return whether the languages of a task are shown with it where it is alone."""
    return len(task.languages) <= FEW


def language_forest(task: TaskComparison) -> list[Block]:
    """Return the differences of one task by language, the lowest first; nothing for a single language."""
    first = task.systems[0]
    return [
        _forest(f"{task.title}: {first} minus {name} by language, points", rows, (first, name))
        for index, name in enumerate(task.systems)
        if (rows := _language_rows(task, index))
    ]


def language_name(code: str) -> str:
    """Return ``Swahili (sw)``; the code alone where the table of languages does not have it."""
    table = known_languages()
    return f"{table.get(code).name} ({code})" if code in table else code


def _language_rows(task: TaskComparison, index: int) -> list[_LevelRow]:
    """Return the rows of the languages with p, after Holm over the languages of the task, the lowest first."""
    levels, sizes = language_levels(task, index), {own.language: len(own.ids) for own in task.languages}
    rows = [
        _level_row(language_name(code), difference, sizes[code], levels[code], depth=1)
        for code, difference in _by_language(task, index).items()
        if difference is not None
    ]
    return sorted(rows, key=lambda row: row[0].value or 0.0) if len(rows) > 1 else []


def _level_row(label: str, own: Difference, items: int, p: float | None, *, depth: int = 0) -> _LevelRow:
    low, high = (None if end is None else end * 100 for end in (own.low, own.high))
    numbers = {"value": own.value * 100, "low": low, "high": high}
    return ForestRow(label=label, **numbers, n=items, depth=depth, significant=_is_decided(p)), p


def _forest(title: str, rows: Sequence[_LevelRow], names: tuple[str, str]) -> Charts:
    """Return the rows as a chart, and as a table with strips for formats without pictures."""
    drawn = tuple(row for row, _ in rows)
    columns: dict[str, Callable[[_LevelRow], str]] = {
        "": lambda pair: f"{'  ' * pair[0].depth}{pair[0].label}",
        "diff.": lambda pair: pair[0].text,
        "95 % interval": lambda pair: pair[0].ends or BLANK,
        "p (Holm)": lambda pair: p_text(pair[1]),
        "items": lambda pair: f"{pair[0].n:,}",
        "lower | higher": lambda pair: strip(pair[0], drawn),
    }
    notes = (DECIDES,) if any(row.is_disputed for row in drawn) else ()
    table = table_of(title, rows, columns, words=["lower | higher"], label_width=25, notes=notes)
    chart = ForestChart(title=title, rows=drawn, left=f"{names[1]} better", right=f"{names[0]} better")
    return Charts(charts=(chart,), table=table)


def power_blocks(found: Sequence[Detectable]) -> list[Block]:
    """Return the table with its legend."""
    rows, detect = [], any(detectable.needed_items is not None for detectable in found)
    for detectable in found:
        view = ", ".join(f"{name}={value}" for name, value in detectable.view.items())
        fields = (
            detectable.language or "mean",
            f"{detectable.items:,}",
            f"{detectable.clusters:,}",
            percent(detectable.sd) + ("*" if detectable.sd is not None and detectable.assumed else ""),
            percent(detectable.difference),
            *([_needed(detectable)] if detect else []),
        )
        label = f"{detectable.task} ({view})" if view else detectable.task
        rows.append(TableRow(label=label, fields=fields, style="bold" if detectable.language is None else ""))
    needed = ["needed"] if detect else []
    heads = ("task", "language", "items", "clusters", "SD", "difference", *needed)
    table = make_table("Smallest detectable differences", heads, rows, words={0}, untitled=True, folding=True)
    return [table, Note(legend("power") + (" " + legend("needed items") if detect else ""), "note")]


def _needed(own: Detectable) -> str:
    if own.needed_items is None:
        return BLANK
    languages = "" if own.needed_languages is None else f", or {own.needed_languages:,} languages"
    return f"{own.needed_items:,} items{languages}"


def power_rows(found: Sequence[Detectable]) -> list[dict[str, Any]]:
    """Return one row for every language, and for the mean of a task (language None); fractions in [0, 1]."""
    return [asdict(detectable) for detectable in found]
