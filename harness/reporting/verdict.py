"""What a comparison says in a sentence, and its differences around 0, by task and by language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.analysis.comparison import Comparison, TaskComparison
from harness.analysis.significance import Difference
from harness.languages.table import known_languages
from harness.reporting.forest import ForestChart, ForestRow, strip
from harness.reporting.model import Block, Charts, Note, Notes, Table, rows_of
from harness.reporting.number import NOTHING, interval_text, level_text, p_text, signed_interval
from harness.reporting.remark import counted
from harness.reporting.system_name import short_system
from harness.statistics import holm

__all__ = [
    "FEW",
    "LEVEL",
    "forest_blocks",
    "has_few_languages",
    "language_forest",
    "language_levels",
    "task_levels",
    "verdict_blocks",
]

LEVEL = 0.05
FEW = 16
"""Languages that are shown under a task that is alone."""
TASKS = 5
"""Tasks that have a sentence of their own, those with the largest differences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """A further system against the first one in one task, by the task's first metric."""

    task: TaskComparison
    place: int
    """Of the further system."""
    difference: Difference
    p: float | None
    """After Holm over all tasks and systems."""

    @property
    def names(self) -> tuple[str, str]:
        """The first and the further system."""
        return self.task.systems[0], self.task.systems[self.place]

    @property
    def is_decided(self) -> bool:
        """Whether the systems differ."""
        return self.p is not None and self.p <= LEVEL

    @property
    def direction(self) -> str:
        """Where the further system is."""
        return "even" if not self.is_decided else "above" if self.difference.value > 0 else "below"


def _by_systems(compared: Comparison) -> dict[tuple[str, str], list[_Pair]]:
    """Return the pairs by the names of the two systems, corrected together."""
    found = [
        _Pair(task=task, place=place, difference=own, p=own.p)
        for task in compared.tasks
        for place in _places(task)
        if (own := task.scores[0].differences[place]) is not None
    ]
    crossed = [own for own in found if _model(own.names[0]) != _model(own.names[1])]
    # Conditions of the first model itself matter only where nothing else is compared.
    found = crossed or found
    adjusted = iter(holm([own.p for own in found if own.p is not None]))
    found = [own if own.p is None else replace(own, p=float(next(adjusted))) for own in found]
    groups: dict[tuple[str, str], list[_Pair]] = {}
    for pair in found:
        first, second = pair.names
        models = _model(first), _model(second)
        groups.setdefault(models if models[0] != models[1] else (first, second), []).append(pair)
    return groups


def task_levels(compared: Comparison) -> dict[tuple[str, str], float | None]:
    """Return p by task and further system, after Holm over all that the verdict compares; others have none."""
    pairs = (pair for own in _by_systems(compared).values() for pair in own)
    return {(pair.task.title, pair.names[1]): pair.p for pair in pairs}


def language_levels(task: TaskComparison, place: int) -> dict[str, float | None]:
    """Return p of a further system by language, after Holm over the languages of the task."""
    found = {
        part.language: own.p
        for part in task.languages
        if (own := part.scores[0].differences[place]) is not None
    }
    adjusted = iter(holm([p for p in found.values() if p is not None]))
    return {code: None if p is None else float(next(adjusted)) for code, p in found.items()}


def _places(task: TaskComparison) -> list[int]:
    """Return the systems that the first one is compared with in a verdict.

    Of another model that has several in this task, those of the first one's own conditions, if there are any; other
    conditions of the first model itself only where there is no other model.
    """
    first, *further = task.systems
    others = [own for own in further if _model(own) != _model(first)]
    kept = []
    for name in others or further:
        same = [
            own for own in others if _model(own) == _model(name) and _conditions(own) == _conditions(first)
        ]
        if not same or name in same:
            kept.append(name)
    return [task.systems.index(name) for name in kept]


def _model(system: str) -> str:
    return system.partition(" (")[0]


def _conditions(system: str) -> str:
    return system.partition(" (")[2]


def verdict_blocks(compared: Comparison) -> list[Block]:
    """Return for every further system what the comparison says: one sentence, and one for its largest differences."""
    found: list[Block] = []
    for names, own in _by_systems(compared).items():
        texts = list(_sentences(names, own))
        found += [Note(texts[0], "heading"), *([Notes(texts[1:], "findings")] if texts[1:] else [])]
    return found


def _sentences(names: tuple[str, str], pairs: Sequence[_Pair]) -> Iterator[str]:
    if len(pairs) > 1:
        first, second = map(short_system, names)
        counts = {
            way: sum(pair.direction == way for pair in pairs if pair.p is not None)
            for way in ("above", "below", "even")
        }
        untested = sum(pair.p is None for pair in pairs)
        parts = [f"{way} {first} on {counts[way]}" for way in ("above", "below") if counts[way]]
        text = (
            f"Of {len(pairs)} tasks, {second} is {' and '.join(parts)}" if parts else f"Of {len(pairs)} tasks"
        )
        rest = [f"the two are not distinguishable on {counts['even']}"] if counts["even"] else []
        rest += [f"{untested} cannot be tested"] if untested else []
        yield ", ".join([text, *rest]) + " (p after Holm over tasks and systems)."
    for pair in sorted(pairs, key=lambda own: -abs(own.difference.value))[:TASKS]:
        yield _sentence(pair)


def _sentence(pair: _Pair) -> str:
    first, second = map(short_system, pair.names)
    own, task = pair.difference, pair.task
    points = abs(own.value) * 100
    where = f"{counted(task.items, 'item')} in {counted(len(task.languages), 'language')}"
    if not pair.is_decided:
        interval = "no interval" if own.low is None else signed_interval(own.low, own.high)
        if pair.p is None:
            return f"{task.title}: {second} minus {first} is {own.value * 100:+.1f} points, without a test; {where}."
        excluded = own.low is not None and own.high is not None and (own.low > 0 or own.high < 0)
        but = " The interval is beyond 0, but the corrected test does not decide." if excluded else ""
        return (
            f"{task.title}: {second} and {first} are not distinguishable: {own.value * 100:+.1f} points ({interval}), "
            f"{level_text('p', pair.p)}, {where}.{but}"
        )
    low, high = own.low, own.high
    if own.value < 0 and low is not None and high is not None:
        low, high = -high, -low
    interval = "" if low is None or high is None else f" ({interval_text((low, high))})"
    way = "above" if own.value > 0 else "below"
    return f"{task.title}: {second} is {points:.1f} points {way} {first}{interval}, {level_text('p', pair.p)}, {where}."


def forest_blocks(compared: Comparison) -> list[Block]:
    """Return for every further system its differences by task; by language too where there is one task."""
    found: list[Block] = []
    for names, own in _by_systems(compared).items():
        first, second = map(short_system, names)
        rows = [
            _row(pair.task.title, pair.difference, pair.task.items, decided=pair.is_decided) for pair in own
        ]
        levels = [pair.p for pair in own]
        if len(own) == 1 and has_few_languages(own[0].task):
            languages = _language_rows(own[0].task, own[0].place)
            rows += [row for row, _ in languages]
            levels += [p for _, p in languages]
        found.append(_forest(f"{second} minus {first}, points", rows, levels, (first, second)))
    return found


def has_few_languages(task: TaskComparison) -> bool:
    """Return whether the languages of a task are shown with it where it is alone."""
    return len(task.languages) <= FEW


def language_forest(task: TaskComparison) -> list[Block]:
    """Return the differences of one task by language, the lowest first; nothing for a single language."""
    found: list[Block] = []
    for place, name in enumerate(task.systems):
        rows = _language_rows(task, place)
        if rows:
            first, second = short_system(task.systems[0]), short_system(name)
            title = f"{task.title}: {second} minus {first} by language, points"
            found.append(_forest(title, [row for row, _ in rows], [p for _, p in rows], (first, second)))
    return found


def _language_rows(task: TaskComparison, place: int) -> list[tuple[ForestRow, float | None]]:
    """Return the rows of the languages with p, after Holm over the languages of the task, the lowest first."""
    table = known_languages()
    found = [
        (part.language, own, len(part.ids))
        for part in task.languages
        if (own := part.scores[0].differences[place]) is not None
    ]
    if len(found) < 2:
        return []
    levels = language_levels(task, place)
    rows = []
    for code, own, items in found:
        p = levels[code]
        name = f"{table.get(code).name} ({code})" if code in table else code
        rows.append((_row(name, own, items, decided=p is not None and p <= LEVEL, depth=1), p))
    return sorted(rows, key=lambda row: row[0].value or 0.0)


def _row(label: str, own: Difference, items: int, *, decided: bool, depth: int = 0) -> ForestRow:
    return ForestRow(
        label=label,
        value=own.value * 100,
        low=None if own.low is None else own.low * 100,
        high=None if own.high is None else own.high * 100,
        n=items,
        depth=depth,
        significant=decided,
    )


def _forest(
    title: str, rows: Sequence[ForestRow], levels: Sequence[float | None], names: tuple[str, str]
) -> Charts:
    """Return the rows as a chart, and as a table with strips for formats without pictures."""
    first, second = names
    table = Table(
        title=title,
        heads=("diff.", "95 % interval", "p (Holm)", "items", "lower | higher"),
        rows=rows_of(
            (
                f"{'  ' * row.depth}{row.label}",
                row.text,
                row.ends or NOTHING,
                p_text(p),
                f"{row.n:,}",
                strip(row, rows),
            )
            for row, p in zip(rows, levels, strict=True)
        ),
        words=frozenset({4}),
        label_width=25,
    )
    chart = ForestChart(title=title, rows=tuple(rows), left=f"{first} better", right=f"{second} better")
    return Charts(charts=(chart,), table=table)
