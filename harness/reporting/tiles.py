"""The four numbers that a reader of a report sees first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from harness.analysis.diagnosis import SIGNIFICANCE
from harness.languages.table import known_languages
from harness.reporting.chance import above_chance
from harness.reporting.contrast import NORMAL, Contrast, from_others, mean_of_others, score_of
from harness.reporting.glance import Glance, TaskGlance
from harness.reporting.material import Material
from harness.reporting.model import Tile
from harness.reporting.number import percent, signed, uncertainty
from harness.reporting.remark import counted
from harness.reporting.system_name import short_name
from harness.statistics import benjamini_hochberg

__all__ = ["Lag", "lags", "tiles"]

FEWEST_TASKS = 3
"""A language is compared with the others over as many tasks, where any language has them."""
FEWEST_LANGUAGES = 3
BASELINES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far a language is from the mean of the others, over all its tasks."""

    code: str
    name: str
    tasks: int
    mean: float
    """Mean over tasks of its score minus that of the others, as a fraction."""
    half: float | None
    """Half the 95 % interval; None where an error is unknown."""
    q: float = 1.0
    """After Benjamini-Hochberg over all languages that are compared."""


def tiles(material: Material, first: Glance) -> list[Tile]:
    """Return the tiles that make sense for the first run: two to four where it has scores."""
    found = [_mean(material, first), _gap(material, first), _weakest(material, first), _chance(material)]
    return [tile for tile in found if tile is not None]


def _mean(material: Material, first: Glance) -> Tile | None:
    found = _suite(material)
    if found is not None:
        return found
    value, tasks = first.mean.value, first.averaged
    if value is None:
        return None
    baselines = _baselines(material, tasks)
    if len(tasks) > 1:
        return _mean_tile(f"Mean of {len(tasks)} tasks", value, first.mean.interval, baselines)
    [task] = tasks
    chance = [f"chance {percent(task.chance)}"] if task.chance is not None else []
    note = "; ".join([*chance, *([baselines] if baselines else [])])
    return _mean_tile(task.column.plain_title, value, first.mean.interval, note)


def _suite(material: Material) -> Tile | None:
    """Return the score of the first suite that has one, with those of the baselines."""
    rows = [(run, row) for run in material.every for row in run.results.suites if row.paper.value is not None]
    own = next((row for run, row in rows if run is material.runs[0]), None)
    if own is None or own.paper.value is None:
        return None
    others = [
        f"{short_name(str(run.manifest.model))} baseline {percent(row.paper.value)}"
        for run, row in rows
        if run not in material.runs
        and (row.suite, row.protocol, row.view) == (own.suite, own.protocol, own.view)
    ]
    notes = ["mean of the categories", *([] if own.complete else ["fewer languages"]), *others[:BASELINES]]
    return _mean_tile(f"Score on {own.suite}", own.paper.value, own.paper.ci, "; ".join(notes))


def _mean_tile(title: str, value: float, interval: tuple[float, float] | None, note: str) -> Tile:
    return Tile(title=title, value=percent(value), small=uncertainty(value, interval), note=note)


def _baselines(material: Material, tasks: Sequence[TaskGlance]) -> str:
    """Return the means of the baselines over the same tasks; those that miss one of them are not shown."""
    found = []
    for run in material.every:
        if run in material.runs:
            continue
        rows = [material.mean(run, task.column).row for task in tasks]
        values = [row.value for row in rows if row is not None]
        if len(values) == len(tasks):
            found.append(f"{short_name(str(run.manifest.model))} baseline {percent(fmean(values))}")
    return ", ".join(found[:BASELINES])


def _gap(material: Material, first: Glance) -> Tile | None:
    """Return how much lower the other languages score than the one the model was trained in."""
    if first.gap is None:
        return None
    gap, count = first.gap
    tasks = [task for task in first.averaged if task.transfer_gap is not None]
    sources = {task.source for task in tasks}
    [code] = sources if len(sources) == 1 else [None]
    table = known_languages()
    name = table.get(code).name if code is not None and code in table else "the source language"
    halves = [
        (found.high - found.low) / 2
        for task in tasks
        if (found := _against(material, task, task.source or ""))
    ]
    half = math.hypot(*halves) / count if len(halves) == count else None
    trained = any(task.column.protocol not in {"prompted", "frozen"} for task in tasks)
    verb = "Lost on leaving" if gap >= 0 else "Gained on leaving"
    return Tile(
        title=f"{verb} {name}" if trained else f"Other languages against {name}",
        value=signed(-gap).replace("-", "\u2212") if percent(gap) != "0.0" else "0.0",
        small="" if half is None else f"±{percent(half)}",
        note=f"{'transfer gap of 1 task' if count == 1 else f'mean transfer gap of {count} tasks'}",
    )


def _against(material: Material, task: TaskGlance, code: str) -> Contrast | None:
    """Return a language's score in one task minus the mean of the others in the task's mean."""
    run, column = material.runs[0], task.column
    codes = [language.code for language in task.languages if language.is_in_mean]
    return from_others(run, column, code, codes)


def lags(material: Material, first: Glance) -> list[Lag]:
    """Return how far every language is from the others, the lowest first; nothing for fewer than three languages.

    Languages have the tasks that most of the comparison needs: three, or as many as any language has.
    """
    run = material.runs[0]
    found = list[tuple[Lag, float]]()
    for code, name, _ in material.languages:
        pairs = []
        for task in first.averaged:
            codes = [language.code for language in task.languages if language.is_in_mean]
            own, others = score_of(run, task.column, code), mean_of_others(run, task.column, code, codes)
            if own is not None and others is not None:
                pairs.append((own.value - others.value, from_others(run, task.column, code, codes)))
        if pairs:
            found.append(_lag(code, name, pairs))
    least = min(FEWEST_TASKS, max((lag.tasks for lag, _ in found), default=0))
    found = [(lag, p) for lag, p in found if lag.tasks >= least]
    if len(found) < FEWEST_LANGUAGES:
        return []
    rates = benjamini_hochberg([p for _, p in found]).tolist()
    tested = [
        Lag(code=lag.code, name=lag.name, tasks=lag.tasks, mean=lag.mean, half=lag.half, q=rate)
        for (lag, _), rate in zip(found, rates, strict=True)
    ]
    return sorted(tested, key=lambda lag: (lag.mean, lag.code))


def _lag(code: str, name: str, pairs: Sequence[tuple[float, Contrast | None]]) -> tuple[Lag, float]:
    """Return the mean difference over tasks, which are taken as independent, and its two-sided p."""
    known = [found for _, found in pairs if found is not None]
    mean, half, p = fmean(difference for difference, _ in pairs), None, 1.0
    if len(known) == len(pairs):
        half = math.hypot(*((one.high - one.low) / 2 for one in known)) / len(known)
        p = math.erfc(NORMAL * abs(mean) / half / math.sqrt(2)) if half else 1.0
    return Lag(code=code, name=name, tasks=len(pairs), mean=mean, half=half), p


def _weakest(material: Material, first: Glance) -> Tile | None:
    found = lags(material, first)
    if not any(lag.half is not None for lag in found):
        return None
    lowest = found[0]
    tasks = counted(lowest.tasks, "task")
    half = "" if lowest.half is None else f" ±{percent(lowest.half)}"
    size = f"{signed(lowest.mean)}{half}".replace("-", "\u2212")
    title = f"Weakest language ({min(FEWEST_TASKS, lowest.tasks)} tasks or more)" if lowest.tasks > 1 else ""
    if lowest.q <= SIGNIFICANCE and lowest.mean < 0:
        note = f"{size} against the others, {tasks}"
        return Tile(title=title or "Weakest language", value=lowest.name, note=note)
    why = "within the noise" if lowest.half is not None else "its error is not known"
    note = f"the lowest is {lowest.name}, {size}: {why}"
    return Tile(title=title or "Weakest language", value="Not clear", note=note)


def _chance(material: Material) -> Tile | None:
    found = above_chance(material.runs[0], material.summary)
    if not found.known:
        return None
    return Tile(
        title="Cells above chance, tested",
        value=f"{found.above} of {found.known}",
        note="a cell is one task in one language",
    )
