"""The scores of each language over the checkpoints of a training: rows, a table and a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness import NamedTable, Run, UsageError
from harness.analysis import Series, read_histories
from harness.metrics import Metric, metric_name
from harness.reporting import (
    BLANK,
    SAMPLE_WARNING,
    Block,
    Field,
    Figure,
    Note,
    Table,
    counted,
    history_figure,
    percent,
    rows_of,
    uncertainty,
)

LEGEND = (
    "Scores x100 on the items that all checkpoints answered, with 95 % intervals. + and -: the paired difference from "
    "the checkpoint before is more than its 95 % interval; everything else may well be noise."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One metric of one task in one language over the checkpoints."""

    language: str
    """``mean`` of all that the task has."""
    series: Series

    def moved(self, at: int) -> str:
        """Return ``+`` or ``-`` where the score differs from the one before by more than noise, else nothing."""
        half = self.series.half(at - 1, at) if at else None
        change = self.series.steps[at].value - self.series.steps[at - 1].value if at else 0.0
        return "" if half is None or abs(change) <= half else "+" if change > 0 else "-"


def curves(runs: Sequence[Run], metrics: NamedTable[Metric]) -> list[Curve]:
    """Return the curves of runs in the order of their steps, the languages of a task before its mean.

    Only the first headline metric of a task is drawn. Empty where there are fewer than two runs, or they have no task
    in common.
    """
    codes = dict.fromkeys(cell.language for run in runs for cell in run.cells if cell.is_scored)
    if len(runs) < 2 or not codes:
        return []
    drawn = [
        Curve(language=code, series=series) for code in codes for series in _series(runs, metrics, [code])
    ]
    if len(codes) > 1:
        means = [series for series in _series(runs, metrics, []) if len(series.languages) > 1]
        drawn += [Curve(language="mean", series=series) for series in means]
    tasks = list(dict.fromkeys(_key(curve) for curve in drawn))
    return sorted(drawn, key=lambda curve: tasks.index(_key(curve)))


def _key(curve: Curve) -> tuple[str, ...]:
    return curve.series.task, *curve.series.conditions


def _series(runs: Sequence[Run], metrics: NamedTable[Metric], languages: Sequence[str]) -> Iterator[Series]:
    """Yield the first series of every task in these languages; means of several tasks have no languages."""
    try:
        several = read_histories(runs, metrics, languages=languages)
    except UsageError:  # only one of the runs finished a task in this language
        return
    known: set[tuple[str, ...]] = set()
    for series in several:
        if series.languages and (key := (series.task, *series.conditions)) not in known:
            known.add(key)
            yield series


def curve_rows(drawn: Sequence[Curve]) -> list[dict[str, Any]]:
    """Return one row per checkpoint and curve, as ``harness compare --history --json`` has them, with the language."""
    return [{"language": curve.language, **row} for curve in drawn for row in curve.series.rows()]


def curve_blocks(drawn: Sequence[Curve], *, sample: bool) -> list[Block]:
    """Return a table per task: a row per checkpoint, a column per language."""
    tables: dict[tuple[str, ...], list[Curve]] = {}
    for curve in drawn:
        tables.setdefault(_key(curve), []).append(curve)
    warning = [Note(SAMPLE_WARNING, "warning")] if sample else []
    return [*warning, *map(_table, tables.values()), *([Note(LEGEND, "soft")] if tables else [])]


def _table(members: Sequence[Curve]) -> Table:
    first = members[0].series
    names = list(dict.fromkeys(step.run for curve in members for step in curve.series.steps))
    rows = []
    for run in names:
        places = [[step.run for step in curve.series.steps] for curve in members]
        found = [place.index(run) if run in place else None for place in places]
        rows.append((run.name, *(_field(curve, at) for curve, at in zip(members, found, strict=True))))
    items = max(curve.series.items for curve in members if curve.language != "mean")
    return Table(
        title=f"{first.task}, {metric_name(first.metric)} ({', '.join(first.conditions)})",
        corner="",
        heads=tuple(curve.language for curve in members),
        rows=rows_of(rows),
        divided=True,
        notes=(f"{counted(items, 'item')} in each language.",),
    )


def _field(curve: Curve, at: int | None) -> Field | str:
    if at is None:
        return BLANK
    step = curve.series.steps[at]
    return Field(text=f"{percent(step.value)}{curve.moved(at)}", small=uncertainty(step.value, step.ci))


def curve_figure(drawn: Sequence[Curve], *, sample: bool) -> Figure:
    """Return the figure of ``harness compare --history`` with one panel per language."""
    named = [replace(curve.series, task=f"{curve.series.task} {curve.language}") for curve in drawn]
    return history_figure(named, sample=sample)
