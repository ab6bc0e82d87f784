"""Brings the runs of a fleet together: one run for each model."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness import HarnessError, Run
from harness.analysis import merge_runs
from harness.running import Session
from harness.storage import RESULTS, file_digest
from harness_fleet.fleet_file import FleetModel, PlannedJob
from harness_fleet.folder import Fleet
from harness_fleet.state import is_running, last_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Cells of a model that have no score, for one reason."""

    model: str
    cells: tuple[str, ...]
    count: int
    reason: str


def gaps(fleet: Fleet) -> list[Gap]:
    """Return missing and failed cells, by model and reason."""
    return [gap for model in fleet.file.models for gap in _gaps_of(fleet, model)]


def _gaps_of(fleet: Fleet, model: FleetModel) -> Iterator[Gap]:
    cells_by_reason: dict[str, list[str]] = {}
    for job in fleet.jobs_of(model):
        try:
            cells = Run(fleet.run(job.name)).cells
        except HarnessError:
            yield Gap(model=model.model, cells=(job.name,), count=job.cells, reason=_why_empty(fleet, job))
            continue
        for cell in cells:
            if cell.status == "failed" or cell.is_stopped:
                reason = cell.reason if cell.status == "failed" else "not reached"
                cells_by_reason.setdefault(reason, []).append(f"{cell.task}:{cell.language}")
    for reason, names in cells_by_reason.items():
        distinct = tuple(dict.fromkeys(names))
        yield Gap(model=model.model, cells=distinct, count=len(names), reason=reason)


def _why_empty(fleet: Fleet, job: PlannedJob) -> str:
    """Return why the run of a job has no results."""
    said = last_line(fleet.folder(job.name))
    if said:
        return f"no results; the job printed: {said}"
    for needed in job.after:
        try:
            failed = [cell for cell in Run(fleet.run(needed)).cells if cell.status == "failed"]
        except HarnessError:
            continue
        if failed:
            return f"not started, since {needed} failed: {failed[0].reason}"
    return "not started"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """The runs of the models that have results."""

    runs: list[Path]
    notes: list[str]


def collect(fleet: Fleet, session: Session) -> Collected:
    """Merge the runs of every model and return the run folders, and notes on what is not in them.

    A model that was merged before is merged again where results of a part changed. Runs that are missing are named in
    the merged run, with their cells. Models of which a job runs are skipped.
    """
    runs: list[Path] = []
    notes: list[str] = []
    for model in fleet.file.models:
        jobs = fleet.jobs_of(model)
        shards = [fleet.run(job.name) for job in jobs if (fleet.run(job.name) / RESULTS).is_file()]
        running = [job.name for job in jobs if is_running(fleet.folder(job.name))]
        if running:
            notes.append(f"{model.model} is not collected yet: {', '.join(running)} runs")
        if running or not shards:
            continue
        result = fleet.result(model)
        if model.shards > 1 and not _is_newest(result, shards):
            shutil.rmtree(result, ignore_errors=True)
            try:
                merged = merge_runs(shards, result, session.registry.metrics, incomplete=True)
            except HarnessError as error:
                notes.append(f"{model.model} is not collected: {error}")
                continue
            notes += [f"{model.model}: {note}" for note in merged]
        runs.append(result)
    return Collected(runs=runs, notes=notes)


def _is_newest(result: Path, shards: list[Path]) -> bool:
    """Return whether a merged run was made of the results that the parts have now; clocks of hosts may differ."""
    try:
        sources = Run(result).manifest.merged_from
    except HarnessError:
        return False
    merged = [source.get("results") for source in sources]
    return merged == [file_digest(shard / RESULTS) for shard in shards]
