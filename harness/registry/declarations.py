"""Declarations that plugins return from hooks for what lies above the registry: reports, fleets, trackers, checks."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from harness.errors import BrokenPluginError, require_extra

if TYPE_CHECKING:
    from harness.storage.run_folder import Run

SIGNALS = 128
"""A shell adds the number of the signal that ended a program; the harness ends with 130 once it is interrupted."""


class JobState(StrEnum):
    """State of a job."""

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
        """Return the state for an exit status of a job; shells and signals give negative ones or above 128."""
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
        """Return the states of jobs that an earlier `run` started; jobs that the backend does not know are missing."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """The declaration of a way to start several processes; targets are ``module:callable``, imported when needed."""

    name: str
    start: str
    """Called as ``start(arguments, count, configuration)``: runs ``harness ARGUMENTS`` in `count` processes of this
    machine and returns its exit status. The configuration is the value of `option`, None where it is not given; it
    says how many processes where `count` is None."""
    join: str
    """Called as ``join()`` in a process that a launcher started: returns its `Processes`. Raises `UsageError` where
    fewer processes are running than were asked for."""
    option: str | None = None
    """The model option that names the launcher's configuration file."""
    extra: str | None = None
    """The extra that installs what it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedRun:
    """A run that a tracker is asked to open."""

    name: str
    """The name of its folder."""
    config: Mapping[str, Any]
    """Plain JSON: model, revision, options, tasks with their versions, languages, seeds, digests of the data."""
    id: str | None = None
    """`RunLog.id` of an earlier attempt, which is continued; None for a run that the tracker does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedResults:
    """Results of a run at its end."""

    values: Mapping[str, float]
    """Means of tasks (``xnli/mean/accuracy``) and suites (``suite/xtreme_r/mean``), with the ends of intervals."""
    table: Sequence[Mapping[str, Any]]
    """The rows of `harness.storage.run_folder.Run.scores`."""
    file: Path
    """``results.json``."""


class RunLog(Protocol):
    """A run that is open in a tracker."""

    id: str
    """Under which the tracker finds the run again."""
    place: str
    """Where a person finds it: an address, a folder."""

    def log(self, values: Mapping[str, float]) -> None:
        """Log the metrics of a finished cell: ``xnli/sw/accuracy``, ``xnli/sw/accuracy_low``, ``..._high``."""

    def finish(self, results: LoggedResults) -> None:
        """Log the means, the table and the file; called again where a finished run is resumed."""

    def close(self, *, finished: bool) -> None:
        """End the run in the tracker; `finished` is false where it was stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracker:
    """The declaration of an experiment tracker; it names its code, which is imported for ``--log NAME`` only."""

    name: str
    """The value of ``--log``."""
    target: str
    """``module:callable``, called as ``callable(run: TrackedRun)``: returns a `RunLog`."""
    summary: str = ""
    """One line for the list of registered names."""
    extra: str | None = None
    """The extra of the harness that installs what it needs."""

    def load(self) -> Callable[[TrackedRun], RunLog]:
        """Return the function that opens a run; raises `MissingExtraError` where its package is not installed."""
        module, _, attribute = self.target.partition(":")
        with require_extra(f"The tracker {self.name!r}", self.extra, self.target):
            opener: Callable[[TrackedRun], RunLog] = getattr(importlib.import_module(module), attribute)
            return opener


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChecks:
    """Checks of tasks on their data; their code is named, and imported when ``harness tasks validate`` runs them."""

    name: str
    target: str
    """``module:callable``, called as ``callable(setting)`` with a `CheckSetting`; returns a `TaskChecker`."""
    summary: str
    remarks: str = ""
    """``module:callable`` of the cheap checks, called by a run with the `CheckedItems` of a cell; yields sentences."""

    def load(self, target: str) -> Any:
        """Return the callable of `target` or `remarks`; raises `BrokenPluginError` where it cannot be imported."""
        module, _, name = target.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise BrokenPluginError(
                f"The task checks {self.name!r} cannot be loaded from {target!r}: {error}."
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFormat:
    """One way to write a report about runs."""

    name: str
    """``markdown``, ``csv``: what ``--format`` takes."""
    suffix: str
    """Of files in this format: ``.md``."""
    render: Callable[[Sequence[Run]], str]
    """Takes the runs, the main one first, and returns the text of the report."""
    summary: str = ""
    write: Callable[[Sequence[Run], Path], list[Path]] | None = None
    """For formats of several files: takes the runs and the folder of ``--output``, and returns the written files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """The declaration of one section of every report; its code is imported when a report is made."""

    name: str
    """``harness report RUN --section NAME`` prints the section alone."""
    title: str
    """Subject of the section, in a few words."""
    target: str
    """``module:callable``, called as ``callable(runs)``; returns a `SectionReport`, or None for runs without it."""
    place: Literal["scores", "items"] = "scores"
    """Where the HTML page has it: after the scores, or before the single items."""
    in_terminal: bool = True
    """Whether summaries in a terminal read it; other sections are in documents, and printed alone on request."""
    empty: str = "This run has nothing to show here."
    """Text that is printed when the section alone is asked for, and the run has nothing of it."""
