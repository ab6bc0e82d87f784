"""The backend ``slurm``: the jobs of a fleet as job arrays, submitted with submitit."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from submitit import SlurmExecutor
from submitit.core.utils import DelayedSubmission, FailedJobError, FailedSubmissionError

from harness import AdapterError, HarnessError, UsageError
from harness.registry import FleetJob, JobState
from harness.storage import write_atomically
from harness_slurm.options import SlurmOptions

_STATUS = "slurm-status.json"
"""In the folder of a job: its exit status, null as long as there is none; missing where it was never started."""
SPARE = 0.2
"""Part of the grace that is kept for requeueing."""
LOOK = os.WEXITED | os.WNOWAIT | os.WNOHANG
IGNORING = ("sh", "-c", "trap '' USR1 USR2; exec \"$@\"", "sh")
"""Slurm sends the warning to all processes of a job; only submitit's may act on it."""
FILES = "_slurm"
"""Next to the folders of the jobs: scripts, pickles and outputs of submitit."""
SUBMITTED = "slurm.json"
"""In the folder of a job: its id in Slurm."""
LARGEST_ARRAY = 1000
"""Tasks of one array; Slurm's own default is 1001, and its indices start at 0."""
NOT_STARTED = {
    "PENDING",
    "CONFIGURING",
    "REQUEUED",
    "REQUEUE_HOLD",
    "REQUEUE_FED",
    "RESV_DEL_HOLD",
    "SPECIAL_EXIT",
}
"""States of a queued job whose command is not running; see "JOB STATE CODES" of ``man squeue``."""


@dataclass(slots=True)
class ResumableCommand:
    """A command that is interrupted and submitted again when its time runs out; plain fields, since it is pickled."""

    command: tuple[str, ...]
    folder: str
    """That of the job."""
    grace: float
    """Seconds between the warning and the end of the job's time."""
    pid: int = 0

    def __call__(self) -> int:
        """Run the command and return its exit status; raises `HarnessError` where jobs that need it must not start."""
        folder = Path(self.folder)
        self._write(None)
        with (folder / "log.txt").open("ab") as log:
            process = subprocess.Popen(
                [*IGNORING, *self.command], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            self.pid = process.pid
            status = process.wait()
        self._write(status)
        if JobState.of_status(status) is not JobState.DONE:
            raise HarnessError(f"The command ended with status {status}; see {folder / 'log.txt'}.")
        return status

    def checkpoint(self) -> DelayedSubmission:
        """Interrupt the command, wait for its end, and return what continues it; called in a handler of a signal."""
        deadline = time.monotonic() + (1 - SPARE) * self.grace
        # Popen.wait() is under way below this handler and holds a lock; the status is left for it.
        with suppress(ProcessLookupError, ChildProcessError):
            if self.pid:
                os.kill(self.pid, signal.SIGTERM)
            while time.monotonic() < deadline and not os.waitid(os.P_PID, self.pid, LOOK):
                time.sleep(0.05)
        return DelayedSubmission(ResumableCommand(self.command, self.folder, self.grace))

    def _write(self, status: int | None) -> None:
        write_atomically(Path(self.folder) / _STATUS, json.dumps({"status": status}) + "\n")


class SlurmRunner:
    """Submits jobs to Slurm, which runs them without this process."""

    def __init__(self, options: SlurmOptions) -> None:
        self._options = options

    def run(
        self,
        jobs: Sequence[FleetJob],
        report: Callable[[str, JobState], None],
        stopping: Callable[[], bool],
    ) -> None:
        """Submit jobs and return; see `JobRunner`. What an earlier submission left in the queue is cancelled.

        Raises:
            UsageError: Where there is no Slurm, or a job has no walltime.
            AdapterError: Where Slurm rejects a job; those submitted before it are cancelled.
        """
        _require_slurm()
        for job in jobs:
            if job.minutes is None:
                raise UsageError(
                    f"The job {job.name!r} has no walltime, which Slurm needs.",
                    hint="Give it with --minutes; a job that needs more is continued.",
                )
        queue = _queue()
        _cancel([number for number in map(_number, jobs) if number in queue])
        ids: dict[str, str] = {}
        for group in _arrays(jobs):
            if stopping():
                return
            try:
                submitted = self._submit(group, ids)
            except (FailedJobError, FailedSubmissionError) as error:
                _cancel(list(ids.values()))
                reason = _reason(str(error))
                raise AdapterError(f"sbatch rejected the job {group[0].name!r}: {reason}.") from error
            for job, number in zip(group, submitted, strict=True):
                ids[job.name] = number
                write_atomically(job.folder / SUBMITTED, json.dumps({"job": number}) + "\n")
                report(job.name, JobState.WAITING)

    def states(self, jobs: Sequence[FleetJob]) -> Mapping[str, JobState]:
        """Return the states from Slurm's queue and the files of the jobs; jobs that were never submitted are missing.

        Raises:
            UsageError: Where there is no Slurm.
            AdapterError: Where its queue cannot be read.
        """
        _require_slurm()
        queue = _queue()  # before the files: a job that ends in between has its status
        numbers = [(job, _number(job)) for job in jobs]
        return {job.name: _state(job.folder, queue.get(number)) for job, number in numbers if number}

    def _submit(self, group: Sequence[FleetJob], ids: Mapping[str, str]) -> list[str]:
        """Submit jobs that need the same as one array, and return their ids."""
        job = group[0]
        executor = SlurmExecutor(job.folder.parent / FILES, max_num_timeout=self._options.requeues)
        parameters = self._parameters(job, [ids[name] for name in job.after if name in ids])
        executor.update_parameters(
            job_name=job.name if len(group) == 1 else "harness",
            **{name: value for name, value in parameters.items() if value is not None},
        )
        for member in group:
            (member.folder / _STATUS).unlink(missing_ok=True)
        grace = self._grace(job)
        commands = [ResumableCommand(member.command, str(member.folder), grace) for member in group]
        return [submitted.job_id for submitted in executor.submit_array(commands)]

    def _parameters(self, job: FleetJob, after: Sequence[str]) -> dict[str, Any]:
        """Return the parameters of submitit's script, by its names; None is not written."""
        options = self._options
        cores = options.cpus * job.processes
        further = {"requeue": True, "kill-on-invalid-dep": "yes", **options.further()}
        return {
            "time": job.minutes,
            "cpus_per_task": cores,
            # srun of Slurm 22.05 and later does not take it from the job.
            "srun_args": [f"--cpus-per-task={cores}"],
            "gpus_per_node": math.ceil(job.gpus) or None,
            "mem": None if job.memory_gib is None else f"{math.ceil(1024 * job.memory_gib)}M",
            "partition": options.partition,
            "account": options.account,
            "qos": options.qos,
            "constraint": options.constraint,
            "dependency": f"afterok:{':'.join(after)}" if after else None,
            "array_parallelism": options.parallel,
            "signal_delay_s": self._grace(job),
            "setup": options.setup.splitlines() if options.setup else None,
            "additional_parameters": further,
        }

    def _grace(self, job: FleetJob) -> int:
        return min(self._options.grace, 20 * (job.minutes or 0))


def _require_slurm() -> None:
    if shutil.which("sbatch") is None or shutil.which("srun") is None:
        raise UsageError(
            "The backend 'slurm' needs the commands sbatch and srun, which are not on this machine.",
            hint="Run it on a login node of the cluster, or use --backend local or ray.",
        )


def _arrays(jobs: Sequence[FleetJob]) -> Iterator[list[FleetJob]]:
    """Yield jobs that need the same resources and the same jobs, after those that they need."""
    job_of = {job.name: job for job in jobs}
    sorter = TopologicalSorter({job.name: [name for name in job.after if name in job_of] for job in jobs})
    sorter.prepare()
    while sorter.is_active():
        ready = sorter.get_ready()
        alike: dict[object, list[FleetJob]] = {}
        for name in sorted(ready, key=list(job_of).index):
            job = job_of[name]
            needs = (job.gpus, job.processes, job.memory_gib, job.minutes, frozenset(job.after) & set(job_of))
            alike.setdefault(needs, []).append(job)
        for group in alike.values():
            for start in range(0, len(group), LARGEST_ARRAY):
                yield group[start : start + LARGEST_ARRAY]
        sorter.done(*ready)


def _number(job: FleetJob) -> str:
    """Return the id of a job in Slurm, empty where it was not submitted."""
    return str(_read(job.folder / SUBMITTED).get("job", ""))


def _cancel(numbers: Sequence[str]) -> None:
    if numbers:
        subprocess.run(["scancel", *numbers], capture_output=True, check=False)


def _queue() -> dict[str, str]:
    """Return the states of the user's jobs that have not ended, by id."""
    command = ["squeue", "--me", "--array", "--noheader", "--format=%i %T"]
    queue = subprocess.run(command, capture_output=True, text=True, check=False)
    if queue.returncode:
        raise AdapterError(f"squeue could not read the queue: {_reason(queue.stderr)}.")
    return dict(line.split(maxsplit=1) for line in queue.stdout.splitlines() if line.strip())


def _reason(errors: str) -> str:
    """Return the last of the errors that a command of Slurm printed, without its name."""
    last = errors.strip().splitlines()[-1:] or ["it printed no reason"]
    return re.sub(r"^\w+: (error|fatal): ", "", last[0]).rstrip(".")


def _state(folder: Path, queued: str | None) -> JobState:
    if queued is not None:
        return JobState.WAITING if queued.strip() in NOT_STARTED else JobState.RUNNING
    content = _read(folder / _STATUS)
    if not content:  # cancelled before it started, as Slurm does where a job that it needs failed
        return JobState.FAILED
    status = content["status"]
    return JobState.LOST if status is None else JobState.of_status(status)


def _read(path: Path) -> dict[str, Any]:
    """Return the content of a file of one job, empty where there is none."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return content
