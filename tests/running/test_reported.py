"""What a run reports while it works."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import harness
import harness_baseline.model
from harness.progress import CellOutcome, PlannedCell, PlannedFit, Progress
from harness.running.run_logs import planned_cells, planned_fits
from harness.storage.run_folder import Run

from .conftest import MakePlan


class Kept(Progress):
    """Keeps what is reported."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self.cells: dict[str, PlannedCell] = {}
        self.outcomes: list[CellOutcome] = []

    def plan(
        self,
        model: str,
        cells: Sequence[PlannedCell],
        fits: Sequence[PlannedFit] = (),
        done: Sequence[CellOutcome] = (),
    ) -> None:
        self.cells = {cell.digest: cell for cell in cells}
        self.events.append(("plan", model, len(cells), len(fits), len(done)))

    def fit_started(self, digest: str, title: str) -> None:
        self.events.append(("fit", title.partition(",")[0]))

    def fit_finished(self, digest: str, *, failed: bool = False) -> None:
        self.events.append(("fitted", failed))

    def cell_started(self, digest: str) -> None:
        self.events.append(("cell", self.cells[digest].task, self.cells[digest].language))

    def cell_finished(self, outcome: CellOutcome) -> None:
        self.outcomes.append(outcome)
        self.events.append(("done", self.cells[outcome.digest].language, outcome.failure))


def evaluate(folder: Path, name: str, progress: Kept, tasks: str = "xnli:de+en,xquad:de") -> Run:
    return harness.evaluate(
        tasks, "baseline:majority", data="sample", recipe="quick", output=folder / name, progress=progress
    )


def test_fits_and_cells_are_reported_in_their_order(tmp_path: Path) -> None:
    progress = Kept()
    run = evaluate(tmp_path, "run", progress)
    assert progress.events == [
        ("plan", "majority", 3, 2, 0),
        ("fit", "mnli (en)"),
        ("fitted", False),
        *(("cell", "xnli", "de"), ("done", "de", "")),
        *(("cell", "xnli", "en"), ("done", "en", "")),
        ("fit", "squad (en)"),
        ("fitted", False),
        *(("cell", "xquad", "de"), ("done", "de", "")),
    ]
    for outcome in progress.outcomes:
        [cell] = [cell for cell in run.cells if cell.digest == outcome.digest]
        assert outcome.metric == run.manifest.tasks[cell.task].headline[0]
        assert outcome.value == cell.metrics[outcome.metric].value
        assert outcome.interval == cell.metrics[outcome.metric].ci
        assert outcome.items == cell.n


def test_what_is_in_the_cache_is_not_to_be_fitted(tmp_path: Path) -> None:
    evaluate(tmp_path, "first", Kept(), "xnli:de")
    progress = Kept()
    evaluate(tmp_path, "second", progress)
    assert progress.events[0] == ("plan", "majority", 3, 1, 0)
    assert [event for event in progress.events if event[0] == "fit"] == [("fit", "squad (en)")]


def test_a_fit_that_fails_is_reported_with_its_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(harness_baseline.model.Baseline, "fit", failing)
    progress = Kept()
    evaluate(tmp_path, "run", progress, "xnli:de+en")
    assert progress.events == [
        ("plan", "majority", 2, 1, 0),
        ("fit", "mnli (en)"),
        ("fitted", True),
        ("done", "de", "RuntimeError: planted"),
        ("done", "en", "RuntimeError: planted"),
    ]


def test_cells_have_a_condition_only_where_their_task_has_several(make_plan: MakePlan) -> None:
    cells = make_plan("xnli:de+en", "tatoeba:de").cells
    conditions = {(cell.task, cell.condition) for cell in planned_cells(cells, None)}
    assert conditions == {("xnli", ""), ("tatoeba", "frozen"), ("tatoeba", "zero_shot_transfer")}


def test_training_stages_are_compared_in_one_unit(make_plan: MakePlan) -> None:
    stages = {stage.name: stage for fit in make_plan("xnli:de", "xquad:de").fits for stage in fit.stages}
    sizes = {fit.digest: fit.size for fit in planned_fits(stages)}
    for name, stage in stages.items():
        files = sum(path.stat().st_size for _, found in stage.train for path in found.files.paths)
        assert sizes[name] == stage.settings.epochs * files
    [limited] = make_plan("xnli:de", train_limit=30).fits[0].stages
    [fit] = planned_fits({"one": limited})
    assert fit.size == limited.settings.epochs * 30
