"""The backend ``local``: the jobs of a fleet as processes of this machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from pydantic import Field

from harness import UsageError
from harness.models import AdapterOptions
from harness.registry import FleetJob, JobState

PAUSE = 0.1
"""Seconds between two looks at the running jobs."""
GIB = 2**30


class LocalOptions(AdapterOptions):
    """Options of the backend ``local``."""

    workers: int | None = Field(default=None, ge=1)
    """Jobs that run at once; by default as many as the GPUs allow, or 1 where jobs ask for none."""


@dataclass(slots=True)
class _Running:
    job: FleetJob
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    gpus: Mapping[str, float]
    """By GPU: the part of it that the job has."""
    ends: float | None
    """When its time is up."""


@dataclass(slots=True)
class _Room:
    """Resources of running jobs, and free ones."""

    free: dict[str, float]
    """By GPU: the part that no job has."""
    memory: float
    workers: int

    def gpus_for(self, job: FleetJob) -> dict[str, float] | None:
        """Return the GPUs that a job gets, None where there is no room for it now."""
        if self.workers < 1 or (job.memory_gib or 0) > self.memory:
            return None
        if job.gpus <= 0:
            return {}
        if job.gpus < 1:
            shared = [name for name, share in self.free.items() if share >= job.gpus]
            # The fullest one first, so that whole GPUs stay whole.
            return {min(shared, key=lambda name: self.free[name]): job.gpus} if shared else None
        free = [name for name, share in self.free.items() if share >= 1]
        return dict.fromkeys(free[: int(job.gpus)], 1.0) if len(free) >= job.gpus else None

    def take(self, job: FleetJob, gpus: Mapping[str, float], sign: int = -1) -> None:
        """Give room to a job, or with `sign` 1 get it back."""
        self.workers += sign
        self.memory += sign * (job.memory_gib or 0)
        for name, share in gpus.items():
            self.free[name] = round(self.free[name] + sign * share, 6)


@dataclass(slots=True)
class _Progress:
    """The jobs of one `LocalRunner.run`."""

    report: Callable[[str, JobState], None]
    waiting: list[FleetJob]
    states: dict[str, JobState] = field(default_factory=dict)
    running: list[_Running] = field(default_factory=list)

    def set(self, name: str, state: JobState) -> None:
        """Take and report the state of a job."""
        self.states[name] = state
        self.report(name, state)

    def cancel(self) -> None:
        """Take jobs that need a failed one out of the queue; jobs come after those that they need."""
        for job in list(self.waiting):
            if any(self.states.get(name) is JobState.FAILED for name in job.after):
                self.waiting.remove(job)
                self.set(job.name, JobState.FAILED)

    def is_ready(self, job: FleetJob) -> bool:
        """Return whether all jobs that a job needs are done, of those that are run here."""
        return all(self.states[name] is JobState.DONE for name in job.after if name in self.states)


class LocalRunner:
    """Runs jobs as processes of this machine, as many at once as there is room for."""

    def __init__(self, options: LocalOptions) -> None:
        self._options = options

    def run(
        self,
        jobs: Sequence[FleetJob],
        report: Callable[[str, JobState], None],
        stopping: Callable[[], bool],
    ) -> None:
        """Run jobs until all have ended; see `JobRunner`.

        Raises:
            UsageError: Where a job asks for more GPUs or memory than this machine has.
        """
        room = self._room(jobs)
        cores = (os.cpu_count() or 1) // room.workers
        threads = {"OMP_NUM_THREADS": str(max(1, cores))} if room.workers > 1 else {}
        progress = _Progress(report=report, waiting=list(jobs))
        progress.states = dict.fromkeys((job.name for job in jobs), JobState.WAITING)
        try:
            while True:
                self._end(progress, room)
                progress.cancel()
                if stopping():
                    return
                for job in list(progress.waiting):
                    gpus = room.gpus_for(job) if progress.is_ready(job) else None
                    if gpus is not None:
                        progress.waiting.remove(job)
                        room.take(job, gpus)
                        progress.running.append(_start(job, gpus, threads))
                        progress.set(job.name, JobState.RUNNING)
                if not progress.running:
                    return
                time.sleep(PAUSE)
        finally:
            self._stop(progress, room)

    def states(self, jobs: Sequence[FleetJob]) -> Mapping[str, JobState]:
        """Return nothing: what is known of a process is in the job's folder."""
        return {}

    def _room(self, jobs: Sequence[FleetJob]) -> _Room:
        names = gpu_names() if any(job.gpus > 0 for job in jobs) else []
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
        for job in jobs:
            if job.gpus > len(names):
                raise UsageError(
                    f"The job {job.name!r} asks for {job.gpus:g} GPUs; this machine has {len(names)}.",
                    hint="Give fewer with --gpus, or another --backend.",
                )
            if (job.memory_gib or 0) > memory:
                raise UsageError(
                    f"The job {job.name!r} asks for {job.memory_gib:g} GiB of memory; this machine has {memory:.0f}.",
                    hint="Give less with --memory, or another --backend.",
                )
        most = max((job.gpus for job in jobs), default=0.0)
        workers = self._options.workers or (max(1, int(len(names) / most)) if most > 0 else 1)
        return _Room(free=dict.fromkeys(names, 1.0), memory=memory, workers=workers)

    def _stop(self, progress: _Progress, room: _Room) -> None:
        """Interrupt what runs and wait for it; a Ctrl-C meanwhile interrupts it at once, a further one kills it."""
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            for running in progress.running:
                running.process.send_signal(number)
            try:
                while progress.running:
                    self._end(progress, room)
                    time.sleep(PAUSE)
            except KeyboardInterrupt:
                continue
            return

    def _end(self, progress: _Progress, room: _Room) -> None:
        """Take what has ended from the running jobs, and interrupt those whose time is up."""
        for running in list(progress.running):
            status = running.process.poll()
            if status is not None:
                running.log.close()
                progress.running.remove(running)
                room.take(running.job, running.gpus, sign=1)
                progress.set(running.job.name, JobState.of_status(status))
            elif running.ends is not None and time.monotonic() > running.ends:
                running.ends = None
                running.process.send_signal(signal.SIGTERM)


def _start(job: FleetJob, gpus: Mapping[str, float], threads: Mapping[str, str]) -> _Running:
    environment = {**threads, **os.environ}
    if gpus:
        environment["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    log = (job.folder / "log.txt").open("ab")
    # Its own session: Ctrl-C of the terminal reaches this process alone, which passes it on once.
    process = subprocess.Popen(
        job.command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=environment,
        start_new_session=True,
    )
    ends = None if job.minutes is None else time.monotonic() + 60 * job.minutes
    return _Running(job=job, process=process, log=log, gpus=gpus, ends=ends)


def gpu_names() -> list[str]:
    """Return the GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip() not in {"", "-1"}]
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    listing = subprocess.run(
        [program, "--query-gpu=index", "--format=csv,noheader"], capture_output=True, text=True, check=False
    )
    return listing.stdout.split() if listing.returncode == 0 else []
