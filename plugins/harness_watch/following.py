"""Follows a training: looks for new checkpoints, has each evaluated, and shows the curves."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from harness import AdapterError, NamedTable, Run
from harness.cli import echo, print_report, show_progress, write_rows
from harness.metrics import Metric
from harness.reporting import counted, percent
from harness_watch.checkpoint import LAST_FILE, Checkpoint, CheckpointFolder
from harness_watch.curve import curve_blocks, curve_figure, curve_rows, curves
from harness_watch.evaluation import Evaluations

POLL = 2.0
"""Seconds between two looks at the folder."""
FIGURE = "curve.svg"


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
            curve_figure(drawn, sample=_is_sample(runs)).save(self._evaluations.folder / FIGURE)


def show_curves(runs: Sequence[Run], metrics: NamedTable[Metric], json_file: Path | None) -> None:
    """Print the curves of finished runs by language, and write their rows into a file."""
    drawn = curves(runs, metrics)
    if json_file is not None:
        write_rows(json_file, curve_rows(drawn))
    if drawn:
        print_report(curve_blocks(drawn, sample=_is_sample(runs)))
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
