"""Fleets in this process: a backend that runs the job's own program here, one job after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness import Run
from harness.registry import FleetJob, JobState
from harness.storage.journal_log import DESCRIPTION, KEY_BYTES, Log, log_paths
from harness_fleet.job import main


class Here:
    """Runs jobs in this process, in their order."""

    def __init__(self) -> None:
        self.jobs: list[str] = []
        """Names of the jobs that were started."""

    def run(
        self,
        jobs: Sequence[FleetJob],
        report: Callable[[str, JobState], None],
        stopping: Callable[[], bool],
    ) -> None:
        """Run jobs; what needs a job that failed fails too."""
        states: dict[str, JobState] = {}
        for job in jobs:
            if any(states.get(name) is JobState.FAILED for name in job.after):
                states[job.name] = JobState.FAILED
            else:
                self.jobs.append(job.name)
                states[job.name] = JobState.of_status(main(job.command[3:]))
            report(job.name, states[job.name])

    def states(self, jobs: Sequence[FleetJob]) -> Mapping[str, JobState]:
        """Return nothing: no job outlives the call."""
        return {}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    """The backend that all commands of the test use."""
    runner = Here()
    monkeypatch.setattr("harness_fleet.submission.open_backend", lambda *_: runner)
    return runner


@pytest.fixture
def answers() -> Callable[[Path], int]:
    """Count the answers in the journal of a run, each as often as it was written."""

    def count(run: Path) -> int:
        logs = [Log(file) for file in log_paths(run / "journal")]
        return sum(content[KEY_BYTES] != DESCRIPTION for log in logs for _, _, content in log.records())

    return count


@pytest.fixture
def scores() -> Callable[[Path], list[Any]]:
    """Return the scores of a run's cells, by what identifies them."""

    def read(run: Path) -> list[Any]:
        return sorted(
            (
                cell.task,
                cell.language,
                cell.seed or 0,
                cell.status,
                cell.n,
                {name: value.to_json() for name, value in cell.metrics.items()},
            )
            for cell in Run(run).cells
            if cell.digest
        )

    return read
