"""The runs of a model line over time: each task's scores, paired differences, and where the score changed.

All differences are on the items that all runs of a series answered. The noise between runs comes from random signs of
how each item departs from its own mean over the runs, so that answers that persist from run to run count once. Change
points are found by `harness.statistics.change_points`; ``benchmarks/drift.py`` measures how many are false.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import NormalDist, fmean, median
from typing import Any

import numpy as np

from harness.analysis.comparison import shared_items
from harness.analysis.significance import flipped_scores
from harness.analysis.systems import System, SystemGroup, group_systems
from harness.errors import UsageError
from harness.metrics.metric import Metric
from harness.progress import show_step
from harness.scores.aggregation import aggregate_tasks
from harness.scores.task_intervals import task_intervals
from harness.statistics import change_points
from harness.statistics.interval import Floats
from harness.statistics.significance import ChangePoint
from harness.storage.run_folder import Run, run_folders
from harness.table import NamedTable, grouped

NORMAL = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One run of a series."""

    run: Path
    model: str
    created: str
    value: float
    """On the items that all runs have."""
    ci: tuple[float, float] | None
    """None where the run has other items too, and for means of tasks."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """One metric of one task, under one protocol, method, seed and view, over time."""

    task: str
    """With its view; ``mean of 3 tasks`` for their mean."""
    conditions: tuple[str, ...]
    """Protocol, method, seed and further conditions."""
    metric: str
    languages: tuple[str, ...]
    """Those that all runs have; the scores are means over them. None for means of tasks."""
    items: int
    """Those that all runs have."""
    steps: tuple[Step, ...]
    noise: Floats | None
    """Shape (draws, runs): scores without a difference between the runs; None where the metric has no item scores."""
    notes: tuple[str, ...] = ()

    @cached_property
    def changes(self) -> tuple[ChangePoint, ...]:
        """The change points."""
        scores = np.array([step.value for step in self.steps])
        return () if self.noise is None else tuple(change_points(scores, self.noise))

    def half(self, first: int, second: int) -> float | None:
        """Return half the 95 % interval of the paired difference of two runs; None where it is not known."""
        if self.noise is None:
            return None
        return NORMAL * float((self.noise[:, second] - self.noise[:, first]).std())

    @property
    def band(self) -> float | None:
        """The median of the halves of neighbours: a smaller difference may well be noise."""
        half_widths = [self.half(at - 1, at) for at in range(1, len(self.steps))]
        # Runs that answer all items the same say nothing of the noise between models.
        halves = [half for half in half_widths if half]
        return median(halves) if halves else None

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per run; scores and differences are fractions."""
        changes = {change.at: change for change in self.changes}
        head: dict[str, Any] = {"task": self.task, "conditions": list(self.conditions), "metric": self.metric}
        head |= {"languages": list(self.languages), "items": self.items, "band": self.band}
        rows = []
        for at, step in enumerate(self.steps):
            row: dict[str, Any] = {**head, **asdict(step), "run": str(step.run)}
            for name, before in (("change", at - 1), ("drift", 0)):
                row[name] = step.value - self.steps[before].value if at else None
                row[f"{name}_half"] = self.half(before, at) if at else None
            change = changes.get(at)
            fields = {"step": change and change.step, "p": change and change.p}
            rows.append({**row, "is_change": change is not None, **fields})
        return rows


def history_runs(folders: Sequence[Path]) -> list[Run]:
    """Return runs in the order in which they were made; a folder that is no run means the runs in it.

    Raises:
        UsageError: There are fewer than two runs.
    """
    runs = [Run(path) for path in run_folders(folders)]
    if len(runs) < 2:
        raise UsageError(
            f"A history needs at least two runs; {' '.join(map(str, folders))} has {len(runs)}.",
            hint="Name several run folders, or a folder that holds them.",
        )
    return sorted(runs, key=lambda run: (run.results.run.created, str(run.path)))


def read_histories(
    runs: Sequence[Run],
    metrics: NamedTable[Metric],
    *,
    tasks: Sequence[str] = (),
    languages: Sequence[str] = (),
    metric: str | None = None,
) -> list[Series]:
    """Return the series of every task that at least two runs finished, then their mean where there are several.

    Args:
        runs: From the oldest to the newest.
        metrics: The registry's.
        tasks: Names or globs to restrict it to; none takes all.
        languages: Codes to restrict it to; none takes all.
        metric: The metric to score with; None takes the headline metrics of each task.

    Raises:
        UsageError: For names that no run has, and where no task was finished twice in the same way.
    """
    series: list[Series] = []
    for group in group_systems(runs, tasks=tasks, languages=languages):
        lines = grouped((_conditions(group, system), system) for system in group.systems)
        for line in lines.values():
            if len(line) > 1:
                show_step(f"History: {group.title}")
                series += _series(group, line, metrics, metric)
    if not series:
        raise UsageError(
            "No task was finished by two of these runs under the same protocol, method and seed."
        )
    return [*series, *_means(series, len(runs))]


def _conditions(group: SystemGroup, system: System) -> tuple[str, ...]:
    cell = system.cell
    view = [f"{name}={value}" for name, value in sorted(cell.view.items()) if name not in group.view]
    return str(cell.protocol), str(cell.method), f"seed={cell.seed}", *view


def _series(
    group: SystemGroup, line: Sequence[System], metrics: NamedTable[Metric], metric: str | None
) -> Iterator[Series]:
    codes = [code for code in line[0].cells if all(code in system.cells for system in line)]
    dropped = sorted({code for system in line for code in system.cells} - set(codes))
    lines = [replace(system, cells={code: system.cells[code] for code in codes}) for system in line]
    for name in ([metric] if metric is not None else line[0].spec.headline) if codes else []:
        by_language, skipped = shared_items(lines, metrics.get(name))
        if not by_language:
            continue
        notes = [f"not in all runs, skipped: {' '.join(dropped)}"] if dropped else []
        if skipped:
            notes.append(f"{skipped:,} items are not the same in all runs and are skipped")
        values = map(fmean, zip(*(items.values for items in by_language), strict=True))
        yield Series(
            task=group.title,
            conditions=_conditions(group, line[0]),
            metric=name,
            languages=tuple(items.language for items in by_language),
            items=sum(len(items.ids) for items in by_language),
            steps=tuple(
                Step(
                    run=system.run.path,
                    model=system.run.manifest.model_name,
                    created=system.run.results.run.created,
                    value=value,
                    ci=None if skipped else _interval(system, name, metrics),
                )
                for system, value in zip(lines, values, strict=True)
            ),
            noise=flipped_scores(metrics.get(name), by_language, task=group.title),
            notes=tuple(notes),
        )


def _interval(system: System, metric: str, metrics: NamedTable[Metric]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean over languages, as the run's report has it."""
    cells, tasks = list(system.cells.values()), system.run.manifest.tasks
    rows = [row for row in aggregate_tasks(cells, tasks) if row.metric == metric]
    scores = task_intervals(rows, cells, tasks, system.run.records_of, metrics)
    return scores[0].ci if scores else None


def _means(task_series: Sequence[Series], runs: int) -> Iterator[Series]:
    """Yield the mean over the tasks that all runs finished, by protocol and seed; each task by its first metric."""
    lines: dict[tuple[str, str], dict[tuple[str, ...], Series]] = {}
    for series in task_series:
        if len(series.steps) == runs:
            protocol, _, seed, *_ = series.conditions
            lines.setdefault((protocol, seed), {}).setdefault((series.task, *series.conditions), series)
    for conditions, by_task in lines.items():
        members = list(by_task.values())
        if len(members) < 2:
            continue
        # The noise of tasks is independent, since their signs have seeds of their own.
        noises = [member.noise for member in members if member.noise is not None]
        columns = zip(*(member.steps for member in members), strict=True)
        yield Series(
            task=f"mean of {len(members)} tasks",
            conditions=conditions,
            metric="first metric of each",
            languages=(),
            items=sum(member.items for member in members),
            steps=tuple(
                replace(steps[0], value=fmean(step.value for step in steps), ci=None) for steps in columns
            ),
            noise=np.mean(noises, axis=0) if len(noises) == len(members) else None,
        )
