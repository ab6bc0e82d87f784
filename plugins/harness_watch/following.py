"""Follows a training: looks for new checkpoints, has each evaluated, and shows the curves of each language."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness import AdapterError, NamedTable, Run, UsageError
from harness.analysis import Series, read_histories
from harness.cli import echo, print_report, show_progress, write_rows
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
from harness_watch.checkpoint import LAST_FILE, Checkpoint, CheckpointFolder, Evaluations

LEGEND = (
    "Scores x100 on the items that all checkpoints answered, with 95 % intervals. + and -: the paired difference from "
    "the checkpoint before is more than its 95 % interval; everything else may well be noise."
)

POLL = 2.0
"""Seconds between two looks at the folder."""
FIGURE = "curve.svg"


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


def _curve_blocks(drawn: Sequence[Curve], *, sample: bool) -> list[Block]:
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


def _curve_figure(drawn: Sequence[Curve], *, sample: bool) -> Figure:
    """Return the figure of ``harness compare --history`` with one panel per language."""
    named = [replace(curve.series, task=f"{curve.series.task} {curve.language}") for curve in drawn]
    return history_figure(named, sample=sample)


class Following:
    """One command that follows a training."""

    def __init__(
        self, checkpoints: CheckpointFolder, evaluations: Evaluations, metrics: NamedTable[Metric]
    ) -> None:
        """Learn what earlier commands evaluated; raises `UsageError` where they had other settings."""
        self._checkpoints = checkpoints
        self._evaluations = evaluations
        self._metrics = metrics
        self._ended = {run.path.name for run in evaluations.runs()}
        self.failed: set[str] = set()
        """The names of checkpoints that were not, or not wholly, evaluated."""

    def follow(self, *, until: int | None = None, idle: float | None = None, once: bool = False) -> None:
        """Evaluate checkpoints in the order of their steps until one of the ends is reached.

        Args:
            until: End when a checkpoint of this step or a later one is there; later ones are not evaluated.
            idle: End when nothing new has come for so many seconds.
            once: End after those that are there now.
        """
        self._checkpoints.look()  # which learns the sizes of the files
        last, is_waiting = time.monotonic(), False
        while True:
            time.sleep(POLL)
            look = self._checkpoints.look()
            new = [
                item
                for item in look.complete
                if item.name not in self._ended and (until is None or item.step <= until)
            ]
            for item in new:
                self._evaluate(item)
                last = time.monotonic()
            is_idle = idle is not None and time.monotonic() - last >= idle
            if until is not None and any(item.step >= until for item in look.complete):
                break
            if not new and not look.growing and (once or is_idle):
                break
            if not new and not is_waiting:
                echo(f"Waiting for checkpoints in {self._checkpoints.path}. Ctrl-C ends.", err=True)
                is_waiting = True
        for item in look.unfinished:
            echo(f"{item.name} is not evaluated: it has no whole {LAST_FILE}.", err=True)

    def _evaluate(self, checkpoint: Checkpoint) -> None:
        """Evaluate one checkpoint, print its scores, and draw the curves again."""
        try:
            with show_progress() as progress:
                run = self._evaluations.evaluate(checkpoint, progress)
        except AdapterError as error:
            echo(f"{checkpoint.name}: {error}", err=True)
            self.failed.add(checkpoint.name)
        else:
            echo(_line(run))
            if any(cell.status == "failed" for cell in run.cells):
                self.failed.add(checkpoint.name)
        self._ended.add(checkpoint.name)
        runs = self._evaluations.runs()
        if drawn := curves(runs, self._metrics):
            _curve_figure(drawn, sample=_is_sample(runs)).save(self._evaluations.folder / FIGURE)


def show_curves(runs: Sequence[Run], metrics: NamedTable[Metric], json_file: Path | None) -> None:
    """Print the curves of finished runs by language, and write their rows into a file."""
    drawn = curves(runs, metrics)
    if json_file is not None:
        write_rows(json_file, curve_rows(drawn))
    if drawn:
        print_report(_curve_blocks(drawn, sample=_is_sample(runs)))
        echo(f"The figure: {runs[0].path.parent / FIGURE}")
    else:
        echo(f"{counted(len(runs), 'checkpoint')} evaluated; a curve needs two.")


def _is_sample(runs: Sequence[Run]) -> bool:
    return any(run.results.run.data == "sample" for run in runs)


def _line(run: Run) -> str:
    """Return ``checkpoint-500: xnli 41.0 (sw 40.0, hi 42.0); 12 s``, with the reasons of failed cells."""
    shown: dict[str, list[str]] = {}
    means: dict[str, float] = {}
    for row in run.results.tasks:
        if row.metric == run.manifest.tasks[row.task].headline[0]:
            means.setdefault(row.task, row.value)
    for cell in run.cells:
        if cell.is_scored:
            value = cell.metrics[run.manifest.tasks[cell.task].headline[0]].value
            shown.setdefault(cell.task, []).append(f"{cell.language} {percent(value)}")
    tasks = [f"{task} {percent(means[task])} ({', '.join(shown[task])})" for task in shown if task in means]
    failed = [
        f"{cell.task} {cell.language} failed: {cell.reason}" for cell in run.cells if cell.status == "failed"
    ]
    return f"{run.path.name}: {'; '.join([*tasks, *failed])}; {run.results.run.seconds:.0f} s"
