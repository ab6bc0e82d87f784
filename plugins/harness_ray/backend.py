"""Runs the jobs of a fleet on Ray: an actor for each, started again where its process, worker or node died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from harness import AdapterError
from harness.registry import FleetJob, JobState
from harness.storage import clean_text
from harness_ray import watcher
from harness_ray.cluster import check_folder, check_room, connected, nodes, start_actor
from harness_ray.options import RayOptions
from harness_ray.replicas import Servers

GRACE = 120.0
"""Seconds that an interrupted command has to end by itself: it keeps the batch that is under way."""
SECONDS_BETWEEN_CHECKS = 0.1
PAUSE = 0.3
"""Seconds between two looks at what changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """How the command of a job ended."""

    status: int
    """Negative or above 128 where a signal ended it."""
    was_stopped: bool
    """Whether it was interrupted, by `JobActor.stop` or because its time was up."""


class JobActor:
    """Runs a command as a child in a process group of its own; two calls must be able to run at once.

    Args:
        command: Program and arguments.
        folder: Where ``log.txt`` is written.
        environment: Variables that the command gets besides those of the node.
        python: The interpreter of the command as the driver names it: that of this node is used in its place.
        minutes: The longest that the command may run.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        python: str,
        minutes: int | None,
    ) -> None:
        self._command = [sys.executable if word == python else word for word in command]
        self._log = folder / "log.txt"
        self._environment = {**os.environ, **environment}
        self._seconds = None if minutes is None else 60.0 * minutes
        self._stopping = threading.Event()
        self._raylet = os.getppid()

    def begun(self) -> bool:
        """Return True: Ray answers once the actor has its place on a node."""
        return True

    def stop(self) -> None:
        """Interrupt the command, and do not start it any more."""
        self._stopping.set()

    def run(self) -> JobOutcome:
        """Run the command, and return how it ended; raises `OSError` where it cannot be started."""
        if self._stopping.is_set():
            return JobOutcome(status=-signal.SIGTERM, was_stopped=True)
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", watcher.__file__, str(os.getpid()), *self._command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
            )
        try:
            was_stopped = self._interrupt_in_time(process)
            return JobOutcome(status=process.wait(), was_stopped=was_stopped)
        finally:
            _kill_group(process)  # where this was interrupted itself

    def _note(self, text: str) -> None:
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"Ray: {text}\n")

    def _interrupt_in_time(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait until the command ends, and return False; where it must stop, interrupt it and return True."""
        ends = None if self._seconds is None else time.monotonic() + self._seconds
        while process.poll() is None:
            if (
                os.getppid() != self._raylet
            ):  # Ray counts this node as dead, and starts the job on another one
                _kill_group(process)
                process.wait()
                self._note("its node died, as Ray counts it")
                return False
            if self._stopping.wait(SECONDS_BETWEEN_CHECKS) or (ends is not None and time.monotonic() > ends):
                process.terminate()
                try:
                    process.wait(GRACE)
                except subprocess.TimeoutExpired:
                    _kill_group(process)
                return True
        return False


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


@dataclass(slots=True)
class _Started:
    """A job that Ray has; `begun` is None once it has its place on a node."""

    job: FleetJob
    actor: Any
    begun: Any
    outcome: Any


@dataclass(slots=True)
class _Progress:
    """The jobs of one `RayRunner.run`."""

    report: Callable[[str, JobState], None]
    waiting: list[FleetJob]
    retries: int
    states: dict[str, JobState]
    started: dict[str, _Started] = field(default_factory=dict)
    deaths: dict[str, int] = field(default_factory=dict)

    def note(self, name: str, state: JobState) -> None:
        self.states[name] = state
        self.report(name, state)

    def is_ready(self, job: FleetJob) -> bool:
        """Return whether all jobs that a job needs are done, of those that are run here."""
        return all(self.states[name] is JobState.DONE for name in job.after if name in self.states)

    def cancel(self) -> None:
        """Take jobs that need a failed one out of the queue."""
        for job in list(self.waiting):
            if any(self.states.get(name) is JobState.FAILED for name in job.after):
                self.waiting.remove(job)
                self.note(job.name, JobState.FAILED)
                return self.cancel()
        return None

    def models(self) -> set[str]:
        """Return the models of the jobs that have not ended."""
        jobs = (*self.waiting, *(started.job for started in self.started.values()))
        return {job.model for job in jobs}

    def try_again(self, job: FleetJob) -> None:
        """Put a job that died back into the queue, unless it died too often."""
        self.deaths[job.name] = self.deaths.get(job.name, 0) + 1
        if self.deaths[job.name] <= self.retries:
            self.waiting.append(job)
            self.note(job.name, JobState.WAITING)


class RayRunner:
    """Runs jobs on a Ray cluster, or on Ray on this machine, as many at once as it has room for."""

    def __init__(self, options: RayOptions) -> None:
        self._options = options

    def run(
        self,
        jobs: Sequence[FleetJob],
        report: Callable[[str, JobState], None],
        stopping: Callable[[], bool],
    ) -> None:
        """Run jobs until all have ended; see `JobRunner`.

        Raises:
            HarnessError: Where no cluster can be reached, or a node does not see the jobs' folders.
            UsageError: Where no node has room for a job.
        """
        if not jobs:
            return
        with connected(self._options):
            cluster, servers = nodes(), Servers(jobs, self._options.replicas)
            servers.check_room(cluster)
            check_room([servers.without(job) for job in jobs], cluster)
            check_folder(jobs[0].folder, cluster)
            states = dict.fromkeys((job.name for job in jobs), JobState.WAITING)
            progress = _Progress(report, list(jobs), self._options.retries, states)
            try:
                _run(progress, servers, stopping)
            finally:
                _stop(progress)
                servers.end()

    def states(self, jobs: Sequence[FleetJob]) -> Mapping[str, JobState]:
        """Return nothing: jobs end with the process that runs them, and what is known is in their folders."""
        return {}


def _run(progress: _Progress, servers: Servers, stopping: Callable[[], bool]) -> None:
    while not stopping():
        progress.cancel()
        for job in [job for job in progress.waiting if progress.is_ready(job)]:
            _start(progress, servers, job)
        if not progress.started and not servers.is_starting():
            return
        for job in _look(progress):
            progress.try_again(job)
        servers.end(progress.models())


def _start(progress: _Progress, servers: Servers, job: FleetJob) -> None:
    """Give a job to Ray, unless its servers are still starting."""
    try:
        placed = servers.place(job)
    except AdapterError as error:
        _note(job, str(error))
        progress.waiting.remove(job)
        progress.note(job.name, JobState.FAILED)
        return
    if placed is None:
        return
    placed_job, environment = placed
    actor = start_actor(
        JobActor,
        placed_job.command,
        placed_job.folder,
        _environment() | environment,
        python=sys.executable,
        minutes=placed_job.minutes,
        cpus=placed_job.processes,
        gpus=placed_job.gpus,
        memory_gib=placed_job.memory_gib,
    )
    progress.waiting.remove(job)
    progress.started[job.name] = _Started(
        job=job, actor=actor, begun=actor.begun.remote(), outcome=actor.run.remote()
    )


def _environment() -> dict[str, str]:
    """Return the environment variables that jobs get from this process."""
    return {name: value for name, value in os.environ.items() if name.startswith("HARNESS_")}


def _look(progress: _Progress) -> list[FleetJob]:
    """Wait a moment for changes, report them, and return the jobs that died."""
    awaited = [
        ref
        for started in progress.started.values()
        for ref in (started.begun, started.outcome)
        if ref is not None
    ]
    if not awaited:
        time.sleep(PAUSE)  # for servers that start
        return []
    ray.wait(awaited, num_returns=1, timeout=PAUSE)
    ready = set(ray.wait(awaited, num_returns=len(awaited), timeout=0)[0])
    died = []
    for name, started in list(progress.started.items()):
        if started.begun in ready:
            started.begun = None
            progress.note(name, JobState.RUNNING)
        if started.outcome in ready:
            state, is_dead = _state(started)
            del progress.started[name]
            progress.note(name, state)
            died += [started.job] if is_dead else []
    return died


def _state(started: _Started) -> tuple[JobState, bool]:
    """Return how a job ended, and whether it died by itself."""
    try:
        outcome: JobOutcome = ray.get(started.outcome)
    except RayTaskError as error:  # its command cannot be started
        _note(started.job, str(error))
        return JobState.FAILED, False
    except RayError as error:  # its worker or its node is gone, or the node has another harness
        _note(started.job, str(error))
        return JobState.LOST, True
    finally:
        ray.kill(started.actor)
    state = JobState.of_status(outcome.status)
    return state, state is JobState.LOST and not outcome.was_stopped


def _note(job: FleetJob, message: str) -> None:
    """Write the end of a message into the log of a job, where its own words are."""
    lines = [line.strip() for line in clean_text(message).splitlines() if line.strip()]
    with (job.folder / "log.txt").open("a", encoding="utf-8") as log:
        log.write(f"Ray: {lines[-1] if lines else 'the job ended without a reason'}\n")


def _stop(progress: _Progress) -> None:
    """Interrupt the jobs that run, give up those that have no place yet, and wait until all have ended."""
    if progress.started:
        _look(progress)
    for name, started in list(progress.started.items()):
        if started.begun is None:
            started.actor.stop.remote()
        else:
            ray.kill(started.actor)
            del progress.started[name]
    while progress.started:
        _look(progress)
