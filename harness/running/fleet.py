"""Jobs of a fleet, and the declaration of a backend that runs them: this machine, Ray, Slurm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

SIGNALS = 128
"""A shell adds the number of the signal that ended a program; the harness ends with 130 once it is interrupted."""


class JobState(StrEnum):
    """What is known of a job."""

    WAITING = "waiting"
    """For its turn, for a machine, or for a job that must end first."""
    RUNNING = "running"
    DONE = "done"
    """Its command ended with status 0: its cells are finished, or failed with their reasons."""
    FAILED = "failed"
    """Its command ended with another status, or a job that it needs failed."""
    LOST = "lost"
    """It was started and did not come to its end: interrupted, killed, out of time, or its machine is gone."""

    @classmethod
    def of_status(cls, status: int) -> JobState:
        """Return what the exit status of a job's command says; one of a shell or a signal is negative or above 128."""
        if status < 0 or status > SIGNALS:
            return cls.LOST
        return cls.FAILED if status else cls.DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetJob:
    """One command that opens one model once; to run it again resumes what it left."""

    name: str
    """Unique in its fleet; letters, digits, dots and dashes."""
    command: tuple[str, ...]
    """Program and arguments, without a shell. Further arguments ``--model REF`` replace the model."""
    folder: Path
    """Its own absolute folder, which all machines see; backends write ``log.txt`` into it."""
    model: str
    """As ``--model`` names it."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of the model, as ``-o`` gives them."""
    after: tuple[str, ...] = ()
    """Names of the jobs that must be done first."""
    gpus: float = 0.0
    processes: int = 1
    memory_gib: float | None = None
    minutes: int | None = None
    """The longest that it may run."""


class JobRunner(Protocol):
    """An opened backend."""

    def run(
        self,
        jobs: Sequence[FleetJob],
        report: Callable[[str, JobState], None],
        stopping: Callable[[], bool],
    ) -> None:
        """Run jobs, each once the jobs in `after` that are among them are done.

        Calls `report` with a job's name at every change of its state. Returns when all have ended, or at once where a
        scheduler continues without this process. Once `stopping` returns True, running jobs are interrupted
        (SIGTERM), and no other starts.

        Raises:
            HarnessError: Where the backend cannot be reached or has no room for a job, before any job starts.
        """

    def states(self, jobs: Sequence[FleetJob]) -> Mapping[str, JobState]:
        """Return what the backend knows of jobs that an earlier `run` started; jobs unknown to it are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetBackend:
    """The declaration of a way to run the jobs of ``harness submit``."""

    name: str
    """As ``--backend`` names it."""
    target: str
    """``module:callable``, imported when it is used: takes the backend's options and returns a `JobRunner`."""
    options: str
    """``module:class`` of a subclass of `AdapterOptions`, which reads ``--backend-option key=value``."""
    summary: str
    extra: str | None = None
    """The extra that installs what it needs."""
