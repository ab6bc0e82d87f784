"""First view of a run: one row per task, and how complete the run is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from harness.reporting.blocks.score import Score
from harness.reporting.overview.column import Column, cells_of
from harness.reporting.overview.mean_row import cells_of_mean, mean_labels, mean_row
from harness.reporting.overview.missing import is_missing
from harness.reporting.overview.published import place_of, published_rows
from harness.reporting.overview.run_remarks import sampled_items
from harness.reporting.overview.summary import Summary, chance_of
from harness.storage.results import TaskScore
from harness.storage.run_folder import Run

WEAKEST = 3
"""Languages that a row names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """How much of what was planned has a score; what a task never had, such as a language, is not planned."""

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
    """The means of its other headline metrics, and of those that were added when it was scored."""
    has_added: bool
    """Whether a further metric was added to the task's own."""
    transfer_gap: float | None
    """The score of the source language minus the mean of the others, as a fraction; None for a collapsed model."""
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
    by_prompt: tuple[float, ...] = ()
    """The means of all prompts that the same items were asked with; `mean` is theirs where there are several."""

    @property
    def scored(self) -> list[LanguageGlance]:
        """The languages with a score."""
        return [language for language in self.languages if language.score.value is not None]

    @property
    def weakest(self) -> list[LanguageGlance]:
        """The three languages with the lowest scores, the lowest first; none of fewer than three, or of equal ones."""
        ranked = sorted(self.scored, key=lambda language: (language.score.value or 0.0, language.code))
        is_ranked = len(ranked) >= WEAKEST and ranked[0].score.value != ranked[-1].score.value
        return ranked[:WEAKEST] if is_ranked else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """The first look at a run."""

    name: str
    """The model without its folder."""
    tasks: tuple[TaskGlance, ...]
    completeness: Completeness
    adds_metrics: bool
    """Whether ``harness score`` added metrics, which a reader has asked for."""
    samples: tuple[str, ...]
    """In what way cells have only a part of their items."""

    @property
    def averaged(self) -> list[TaskGlance]:
        """One row of every task that has a mean: its first, with the mean over its prompts where it has several."""
        rows: dict[str, list[TaskGlance]] = {}
        for task in self.tasks:
            if task.mean.value is not None:
                rows.setdefault(task.column.task, []).append(task)
        return [
            over_prompts([task for task in tasks if are_alike(task.column, tasks[0].column)])
            for tasks in rows.values()
        ]

    @property
    def mean(self) -> Score:
        """The mean of the tasks that have one."""
        return mean_over_tasks([task.mean for task in self.averaged])

    def mean_name(self, count: str) -> str:
        """Return the name of `mean` in reports: no suite's flat score, which counts all metrics of a task."""
        ending = " by their first metric" if any(task.further for task in self.averaged) else ""
        return f"Mean of {count} tasks{ending}"

    @property
    def gap(self) -> tuple[float, int] | None:
        """The mean transfer gap of the tasks that have one, and how many these are."""
        gaps = [task.transfer_gap for task in self.averaged if task.transfer_gap is not None]
        return (fmean(gaps), len(gaps)) if gaps else None


def mean_over_tasks(means: Sequence[Score]) -> Score:
    """Return the mean of the tasks' means, which are taken as independent; its interval where all have one."""
    reaches = [mean.reach for mean in means if mean.reach is not None]
    if not means:
        return Score()
    value = fmean(mean.value for mean in means if mean.value is not None)
    half = math.hypot(*reaches) / len(means) if len(reaches) == len(means) else None
    return Score(value=value, interval=_around(value, half))


def are_alike(one: Column, other: Column) -> bool:
    """Return whether two columns differ in nothing but their prompt."""
    first, second = (replace(column, view=_without_prompt(column.view)) for column in (one, other))
    return first == second


def _without_prompt(view: str) -> str:
    return " ".join(word for word in view.split(" ") if not word.startswith("prompt="))


def over_prompts(tasks: Sequence[TaskGlance]) -> TaskGlance:
    """Return one row for the prompts of a task; they share their items, so the errors are not independent."""
    if len(tasks) == 1:
        return tasks[0]
    values = [task.mean.value for task in tasks if task.mean.value is not None]
    reaches = [task.mean.reach for task in tasks if task.mean.reach is not None]
    gaps = [task.transfer_gap for task in tasks if task.transfer_gap is not None]
    value, marks = fmean(values), dict.fromkeys(mark for task in tasks for mark in task.mean.mark)
    half = fmean(reaches) if len(reaches) == len(tasks) else None
    return replace(
        tasks[0],
        mean=Score(value=value, interval=_around(value, half), mark="".join(marks)),
        transfer_gap=fmean(gaps) if len(gaps) == len(tasks) else None,
        by_prompt=tuple(values),
    )


def _around(value: float, half: float | None) -> tuple[float, float] | None:
    return None if half is None else (max(0.0, value - half), min(1.0, value + half))


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
        name=run.manifest.model_name,
        tasks=tuple(_task(runs, columns, summary) for columns in first.values()),
        completeness=completeness(run),
        adds_metrics=any(spec.shown for spec in run.manifest.tasks.values()),
        samples=tuple(sampled_items(run)),
    )


def completeness(run: Run) -> Completeness:
    """Return how much of what was asked of a run has a score."""
    cells = [cell for cell in run.cells if cell.is_scored or is_missing(cell)]

    def count(status: str) -> int:
        return sum(cell.status == status for cell in cells)

    scored = [cell for cell in cells if cell.is_scored]
    stopped = sum(cell.is_stopped for cell in run.cells)
    return Completeness(
        scored=len(scored),
        failed=count("failed"),
        skipped=count("skipped") - stopped,
        unlabelled=count("ok") - len(scored),
        stopped=stopped,
        tasks=(len({cell.task for cell in scored}), len({cell.task for cell in cells})),
        languages=(len({cell.language for cell in scored}), len({cell.language for cell in cells})),
    )


def _task(runs: Sequence[Run], columns: Sequence[Column], summary: Summary) -> TaskGlance:
    run, column = runs[0], columns[0]
    spec = run.manifest.tasks[column.task]
    first_mean = mean_row(run, run, column, summary.columns)
    means = [
        mean.marked(mean.score) for mean in (mean_row(run, run, each, summary.columns) for each in columns)
    ]
    cells = [cell for cell in cells_of(run, column) if cell.status == "ok"]
    published = published_rows(run.manifest.published, [place_of(column, first_mean.row, spec)])
    return TaskGlance(
        column=column,
        mean=means[0],
        has_added=any(each.metric not in spec.headline for each in columns),
        further=tuple(zip((each.metric for each in columns[1:]), means[1:], strict=True)),
        transfer_gap=first_mean.transfer_gap,
        source=spec.source,
        chance=chance_of(spec, column.metric),
        languages=_languages(run, first_mean.row, column, summary),
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
    index = summary.columns.index(column)
    averaged = set() if row is None else set(cells_of_mean(run, row))
    codes = {cell.language for cell in run.cells if cell.task == column.task}
    return tuple(
        LanguageGlance(
            code=code, name=name, family=section.family, score=scores[index], is_in_mean=code in averaged
        )
        for section in summary.sections
        for code, name, scores in section.rows
        if code in codes
    )


def _baselines(runs: Sequence[Run], column: Column, summary: Summary) -> list[tuple[str, float]]:
    labels, _ = mean_labels(runs)
    rows = [mean_row(run, runs[0], column, summary.columns).row for run in runs[1:]]
    return [
        (label.removeprefix("mean "), row.value)
        for label, row in zip(labels[1:], rows, strict=True)
        if row is not None
    ]
