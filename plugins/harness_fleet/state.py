"""How far a fleet is: the state of every job, and the cells that are done and failed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness import HarnessError, Run
from harness.registry import JobState
from harness.storage import RESULTS, FileLock
from harness_fleet.fleet_file import PlannedJob
from harness_fleet.folder import Fleet
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
        if state in {None, JobState.RUNNING} and is_running(folder):
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


def is_running(folder: Path) -> bool:
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
