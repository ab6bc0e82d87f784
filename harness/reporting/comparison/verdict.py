"""Verdict of a comparison in a sentence, and its differences around 0, by task and by language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.analysis.comparison import Comparison, TaskComparison
from harness.analysis.significance import Difference
from harness.languages.table import known_languages
from harness.reporting.blocks.forest import DECIDES, ForestChart, ForestRow, strip
from harness.reporting.blocks.model import BLANK, Block, Charts, Note, Notes, Table, rows_of
from harness.reporting.blocks.number import interval_text, level_text, p_text, signed_interval
from harness.reporting.blocks.remark import counted
from harness.statistics import holm

_LevelRow = tuple[ForestRow, float | None]
"""A row, and its p after Holm."""
LEVEL = 0.05
FEW = 16
"""Languages that are shown under a task that is alone."""
TASKS = 5
"""Tasks that have a sentence of their own, those with the largest differences."""


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


def _adjusted(differences: Sequence[Difference]) -> list[float | None]:
    """Return p after Holm over all of them; None where there is no test."""
    levels = iter(holm([difference.p for difference in differences if difference.p is not None]).tolist())
    return [None if difference.p is None else next(levels) for difference in differences]


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
    groups: dict[tuple[str, str], list[_Pair]] = {}
    for pair, p in zip(pairs, _adjusted([pair.difference for pair in pairs]), strict=True):
        first, second = map(_model, pair.names)
        groups.setdefault((first, second) if first != second else pair.names, []).append(replace(pair, p=p))
    return groups


def task_levels(compared: Comparison) -> dict[tuple[str, str], float | None]:
    """Return p by task and further system, after Holm over all that the verdict compares; others have none."""
    pairs = (pair for group in _by_systems(compared).values() for pair in group)
    return {(pair.task.title, pair.names[1]): pair.p for pair in pairs}


def language_levels(task: TaskComparison, index: int) -> dict[str, float | None]:
    """Return p of a further system by language, after Holm over the languages of the task."""
    pairs = ((comparison.language, comparison.scores[0].differences[index]) for comparison in task.languages)
    differences = {code: difference for code, difference in pairs if difference is not None}
    return dict(zip(differences, _adjusted(list(differences.values())), strict=True))


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
        rows = [_row(pair.task.title, pair.difference, pair.task.items, pair.p) for pair in pairs]
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
    levels = language_levels(task, index)
    rows = [
        _row(
            language_name(comparison.language),
            difference,
            len(comparison.ids),
            levels[comparison.language],
            depth=1,
        )
        for comparison in task.languages
        if (difference := comparison.scores[0].differences[index]) is not None
    ]
    return sorted(rows, key=lambda row: row[0].value or 0.0) if len(rows) > 1 else []


def _row(label: str, own: Difference, items: int, p: float | None, *, depth: int = 0) -> _LevelRow:
    low, high = (None if end is None else end * 100 for end in (own.low, own.high))
    numbers = {"value": own.value * 100, "low": low, "high": high}
    return ForestRow(label=label, **numbers, n=items, depth=depth, significant=_is_decided(p)), p


def _forest(title: str, rows: Sequence[_LevelRow], names: tuple[str, str]) -> Charts:
    """Return the rows as a chart, and as a table with strips for formats without pictures."""
    forest_rows = tuple(row for row, _ in rows)
    table = Table(
        title=title,
        heads=("diff.", "95 % interval", "p (Holm)", "items", "lower | higher"),
        rows=rows_of(
            (
                f"{'  ' * row.depth}{row.label}",
                row.text,
                row.ends or BLANK,
                p_text(p),
                f"{row.n:,}",
                strip(row, forest_rows),
            )
            for row, p in rows
        ),
        words=frozenset({4}),
        label_width=25,
        notes=(DECIDES,) if any(row.is_disputed for row in forest_rows) else (),
    )
    chart = ForestChart(title=title, rows=forest_rows, left=f"{names[1]} better", right=f"{names[0]} better")
    return Charts(charts=(chart,), table=table)
