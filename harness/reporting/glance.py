"""What a person looks at first: one row per task of a run, and how complete the run is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from harness.metrics.aggregation import cells_of_row
from harness.reporting.column import Column, cells_of
from harness.reporting.mean_row import mean_labels, mean_row
from harness.reporting.run_remarks import sampled_items
from harness.reporting.score import Score
from harness.reporting.suite import published_rows
from harness.reporting.summary import Summary, chance_of
from harness.reporting.system_name import short_name
from harness.storage.results import TaskScore
from harness.storage.run_folder import Run

__all__ = ["Completeness", "Glance", "LanguageGlance", "TaskGlance", "completeness", "glance"]

WEAKEST = 3
"""Languages that a row names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """How much of what was planned has a score."""

    scored: int
    failed: int
    skipped: int
    unlabelled: int
    """Cells with answers, but without labels to score them."""
    stopped: int
    """Cells that the run did not come to."""
    tasks: tuple[int, int]
    """Tasks with a score, of all that were asked for."""
    languages: tuple[int, int]
    """Languages with a score, of all that were asked for."""

    @property
    def cells(self) -> int:
        """All cells that were asked for."""
        return self.scored + self.failed + self.skipped + self.unlabelled + self.stopped

    @property
    def is_whole(self) -> bool:
        """Whether every cell has a score."""
        return self.scored == self.cells


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageGlance:
    """One language of a task."""

    code: str
    name: str
    family: str
    score: Score
    """Without a value where it has none; the mark says why."""
    is_in_mean: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGlance:
    """One task under one protocol, method and view, by its first headline metric."""

    column: Column
    mean: Score
    further: tuple[tuple[str, Score], ...]
    """The means of its other headline metrics."""
    transfer_gap: float | None
    """The score of the source language minus the mean of the others, as a fraction."""
    source: str | None
    """The language that the model was trained in."""
    chance: float | None
    languages: tuple[LanguageGlance, ...]
    """In the order of the summary: by family, then code."""
    baselines: tuple[tuple[str, float], ...]
    """Name and mean of every further run."""
    published: tuple[tuple[str, float], ...]
    """Name and published mean of every system, as fractions."""
    items: int
    seconds: float

    @property
    def scored(self) -> list[LanguageGlance]:
        """The languages with a score."""
        return [language for language in self.languages if language.score.value is not None]

    @property
    def weakest(self) -> list[LanguageGlance]:
        """The three languages with the lowest scores, the lowest first; none where it has fewer than three."""
        ranked = sorted(self.scored, key=lambda language: (language.score.value or 0.0, language.code))
        return ranked[:WEAKEST] if len(ranked) >= WEAKEST else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """The first look at a run."""

    name: str
    """The model without its folder."""
    tasks: tuple[TaskGlance, ...]
    completeness: Completeness
    samples: tuple[str, ...]
    """In what way cells have only a part of their items."""

    @property
    def averaged(self) -> list[TaskGlance]:
        """One row of every task that has a mean: its first."""
        found: dict[str, TaskGlance] = {}
        for task in self.tasks:
            if task.mean.value is not None:
                found.setdefault(task.column.task, task)
        return list(found.values())

    @property
    def mean(self) -> Score:
        """The mean of the tasks that have one, which are taken as independent; its interval where all have one."""
        means = [task.mean for task in self.averaged]
        reaches = [mean.reach for mean in means if mean.reach is not None]
        if not means:
            return Score()
        value = fmean(mean.value for mean in means if mean.value is not None)
        if len(reaches) < len(means):
            return Score(value=value)
        half = math.hypot(*reaches) / len(means)
        return Score(value=value, interval=(max(0.0, value - half), min(1.0, value + half)))

    @property
    def gap(self) -> tuple[float, int] | None:
        """The mean transfer gap of the tasks that have one, and how many these are."""
        gaps = [task.transfer_gap for task in self.averaged if task.transfer_gap is not None]
        return (fmean(gaps), len(gaps)) if gaps else None


def glance(runs: Sequence[Run], summary: Summary) -> Glance:
    """Return the first look at the first run; `summary` is that of the same runs, the further ones its baselines.

    Columns that a section of a plugin shows in its own way, such as probes of layers, have no row.
    """
    run = runs[0]
    first: dict[tuple[str, str, str, str], list[Column]] = {}
    for column in summary.columns:
        if column.key not in summary.covered:
            first.setdefault((column.task, column.protocol, column.method, column.view), []).append(column)
    return Glance(
        name=short_name(str(run.manifest.model)),
        tasks=tuple(_task(runs, columns, summary) for columns in first.values()),
        completeness=completeness(run),
        samples=tuple(sampled_items(run)),
    )


def completeness(run: Run) -> Completeness:
    """Return how much of what was asked of a run has a score."""

    def count(status: str) -> int:
        return sum(cell.status == status for cell in run.cells)

    scored = [cell for cell in run.cells if cell.is_scored]
    stopped = sum(cell.is_stopped for cell in run.cells)
    return Completeness(
        scored=len(scored),
        failed=count("failed"),
        skipped=count("skipped") - stopped,
        unlabelled=count("ok") - len(scored),
        stopped=stopped,
        tasks=(len({cell.task for cell in scored}), len({cell.task for cell in run.cells})),
        languages=(len({cell.language for cell in scored}), len({cell.language for cell in run.cells})),
    )


def _task(runs: Sequence[Run], columns: Sequence[Column], summary: Summary) -> TaskGlance:
    run, column = runs[0], columns[0]
    spec = run.manifest.tasks[column.task]
    own = mean_row(run, run, column, summary.columns)
    means = [
        mean.marked(mean.score) for mean in (mean_row(run, run, each, summary.columns) for each in columns)
    ]
    cells = [cell for cell in cells_of(run, column) if cell.status == "ok"]
    place = (column.task, column.protocol, column.view, column.metric)
    published = published_rows(run.manifest.published, [place])
    return TaskGlance(
        column=column,
        mean=means[0],
        further=tuple(zip((each.metric for each in columns[1:]), means[1:], strict=True)),
        transfer_gap=own.transfer_gap,
        source=spec.source,
        chance=chance_of(spec, column.metric),
        languages=_languages(run, own.row, column, summary),
        baselines=tuple(_baselines(runs, column, summary)),
        published=tuple(
            (label.removeprefix("published "), score.value)
            for label, [score] in published
            if score.value is not None
        ),
        items=sum(cell.n for cell in cells),
        seconds=sum(cell.seconds for cell in cells),
    )


def _languages(
    run: Run, row: TaskScore | None, column: Column, summary: Summary
) -> tuple[LanguageGlance, ...]:
    place = summary.columns.index(column)
    averaged = set() if row is None else set(cells_of_row(row, run.cells))
    asked = {cell.language for cell in run.cells if cell.task == column.task}
    return tuple(
        LanguageGlance(
            code=code, name=name, family=part.family, score=scores[place], is_in_mean=code in averaged
        )
        for part in summary.sections
        for code, name, scores in part.rows
        if code in asked
    )


def _baselines(runs: Sequence[Run], column: Column, summary: Summary) -> list[tuple[str, float]]:
    labels, _ = mean_labels(runs)
    rows = [mean_row(run, runs[0], column, summary.columns).row for run in runs[1:]]
    return [
        (label.removeprefix("mean "), row.value)
        for label, row in zip(labels[1:], rows, strict=True)
        if row is not None
    ]
