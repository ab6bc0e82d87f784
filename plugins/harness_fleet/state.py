"""How far a fleet is: the state of every job, the cells that are done and failed; and its runs, one per model."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness import HarnessError, Run
from harness.analysis import merge_runs
from harness.registry import JobState
from harness.running import Session
from harness.storage import RESULTS, FileLock, file_digest
from harness_fleet.folder import Fleet, FleetModel, PlannedJob
from harness_fleet.job import LOCK, STATUS

ORDER = (JobState.DONE, JobState.RUNNING, JobState.WAITING, JobState.FAILED, JobState.LOST)
BLANK: Mapping[str, JobState] = {}
TAIL = 4096
"""Bytes at the end of a log in which its last line is looked for."""


def job_states(fleet: Fleet, backend_states: Mapping[str, JobState] = BLANK) -> dict[str, JobState]:
    """Return the states of all jobs, from their folders and from what the backend knows of them.

    What a job wrote when it ended counts. One that wrote no end runs where its lock is held; where it is not, the
    backend may know of it, and otherwise it is lost; so is one that ended and whose results cannot be read.
    """
    states: dict[str, JobState] = {}
    for job in fleet.file.jobs:
        folder = fleet.folder(job.name)
        status = read_status(folder)
        state = None if status is None else status["state"]
        if state in {None, JobState.RUNNING} and _is_running(folder):
            state = JobState.RUNNING
        elif state is None:
            state = backend_states.get(job.name, JobState.WAITING)
        elif state is JobState.DONE and not _is_readable(fleet.run(job.name) / RESULTS):
            state = JobState.LOST
        elif state in {JobState.RUNNING, JobState.LOST}:  # a scheduler may have it in its queue again
            state = backend_states.get(job.name, JobState.LOST)
        # Jobs come after those that they need.
        if state is JobState.WAITING and any(states.get(name) is JobState.FAILED for name in job.after):
            state = JobState.FAILED
        states[job.name] = state
    return states


def _is_readable(file: Path) -> bool:
    """Return whether the results of a run are whole; jobs that train leave none."""
    try:
        stat = file.stat()
    except OSError:
        return True
    return _is_whole(file, stat.st_mtime_ns, stat.st_size)


@cache
def _is_whole(file: Path, changed: int, size: int) -> bool:
    try:
        Run(file.parent)
    except HarnessError:
        return False
    return True


def _is_running(folder: Path) -> bool:
    """Return whether a process holds the lock of a job's folder."""
    return FileLock(folder / LOCK).is_held()


def read_status(folder: Path) -> Mapping[str, Any] | None:
    """Return the ``status.json`` of a job, None where it has not begun."""
    try:
        content: Mapping[str, Any] = json.loads((folder / STATUS).read_text(encoding="utf-8"))
        return {**content, "state": JobState(content["state"])}
    except (OSError, ValueError, LookupError, TypeError):
        return None


def forget(fleet: Fleet, job: str) -> None:
    """Remove how a job ended, before it is started again."""
    (fleet.folder(job) / STATUS).unlink(missing_ok=True)


def state_counts(states: Mapping[str, JobState]) -> str:
    """Return ``3 done, 1 running, 8 waiting``."""
    counts = Counter(states.values())
    return ", ".join(f"{counts[state]:,} {state}" for state in ORDER if counts[state])


def unfinished(
    fleet: Fleet, states: Mapping[str, JobState], backend_states: Mapping[str, JobState]
) -> list[str]:
    """Return the jobs that did not come to their end or have failed cells; not those that run or are queued."""
    return [
        job.name
        for job in fleet.file.jobs
        if states[job.name] is not JobState.RUNNING
        and backend_states.get(job.name) not in {JobState.RUNNING, JobState.WAITING}
        and not (states[job.name] is JobState.DONE and count_cells(fleet, [job]).is_whole)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCount:
    """Cells of some jobs."""

    planned: int
    done: int
    failed: int

    @property
    def is_whole(self) -> bool:
        """Whether all of them are scored."""
        return self.done >= self.planned


def count_cells(fleet: Fleet, jobs: Sequence[PlannedJob]) -> CellCount:
    """Return how many cells of jobs are planned, done and failed: each leaves a file in its run folder at once."""
    done = failed = 0
    for job in jobs:
        run = fleet.run(job.name)
        finished = {file.stem for file in (run / "cells").glob("*.json")}
        # Of several processes each leaves a file, DIGEST-RANK.txt; the file of a former failure stays.
        broken = {file.stem.partition("-")[0] for file in (run / "failures").glob("*.txt")} - finished
        done += len(finished)
        failed += len(broken)
    return CellCount(planned=sum(job.cells for job in jobs), done=done, failed=failed)


def last_line(folder: Path) -> str:
    """Return the last line that a job printed; empty where there is none."""
    try:
        with (folder / "log.txt").open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL))
            lines = file.read().decode("utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


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
        running = [job.name for job in jobs if _is_running(fleet.folder(job.name))]
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
