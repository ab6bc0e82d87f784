"""Plays a Slurm cluster: runs the scripts that ``sbatch`` gets on this machine.

Called with the name of a command of Slurm and its arguments. One file per job in ``$FAKE_SLURM`` holds its state. It
has job arrays with a limit, ``afterok`` with ``kill-on-invalid-dep``, signals and requeueing; no walltime, no nodes.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

STATES = Path(os.environ["FAKE_SLURM"])
QUEUED = {"PENDING", "RUNNING", "COMPLETING"}
ENDED_BADLY = {"FAILED", "CANCELLED"}


@contextmanager
def locked() -> Iterator[None]:
    """Let one process at a time see and change states."""
    with (STATES / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def state(job: str) -> str:
    """Return the state of a job."""
    return (STATES / job).read_text()


def sbatch(path: str) -> int:
    """Start a process per job, which waits for its turn."""
    text = Path(path).read_text()
    options = dict(re.findall(r"^#SBATCH --([a-z-]+)=(.*)$", text, re.M))
    with locked():
        number = 1 + sum(file.suffix == ".sh" for file in STATES.iterdir())
        script = STATES / f"{number}.sh"
        shutil.copy(path, script)
        last, _, limit = options.get("array", "-").removeprefix("0-").partition("%")
        jobs = [f"{number}_{index}" for index in range(int(last) + 1)] if limit else [str(number)]
        for job in jobs:
            (STATES / job).write_text("PENDING")
    after = options.get("dependency", "").removeprefix("afterok:").split(":")
    for job in jobs:
        command = [sys.executable, __file__, "wait", job, str(script), limit or "1", *filter(None, after)]
        subprocess.Popen(
            command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    sys.stdout.write(f"Submitted batch job {number}\n")
    return 0


def wait(job: str, script: str, limit: str, *after: str) -> int:
    """Run the script of a job in its turn, and again where it was requeued."""
    number, _, index = job.partition("_")
    environment = {**os.environ, "SLURM_JOB_ID": number, "SLURM_NTASKS": "1", "SLURM_PROCID": "0"}
    if index:
        environment |= {"SLURM_ARRAY_JOB_ID": number, "SLURM_ARRAY_TASK_ID": index}
    while True:
        with locked():
            needed = {state(other) for other in after}
            if needed & ENDED_BADLY:
                (STATES / job).write_text("CANCELLED")
            if state(job) == "CANCELLED":
                return 0
            running = sum(state(other.name) == "RUNNING" for other in STATES.glob(f"{number}_*[0-9]"))
            is_ready = needed <= {"COMPLETED"} and running < int(limit)
            if is_ready:
                (STATES / job).write_text("RUNNING")
        if not is_ready:
            time.sleep(0.05)
            continue
        status = subprocess.run(["bash", script], env=environment, check=False).returncode
        with locked():
            if state(job) == "PENDING":  # requeued
                continue
            end = "CANCELLED" if state(job) == "COMPLETING" else "FAILED" if status else "COMPLETED"
            (STATES / job).write_text(end)
            return 0


def srun(*arguments: str) -> int:
    """Run the command of a job as a group of processes, which signals reach together, as in Slurm."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--unbuffered", action="store_true")
    parser.add_argument("--cpus-per-task")
    parser.add_argument("--output", type=name_of)
    parser.add_argument("--error", type=name_of)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    os.setpgid(0, 0)
    (STATES / f"{job_of()}.pid").write_text(str(os.getpid()))
    for descriptor, path in ((1, given.output), (2, given.error)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
    os.execvp(given.command[0], given.command)


def job_of() -> str:
    """Return the id of the job of this process."""
    array, index = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{index}" if array else os.environ["SLURM_JOB_ID"]


def name_of(pattern: str) -> str:
    """Return the name of the file that a pattern of Slurm means."""
    number, _, index = job_of().partition("_")
    return pattern.replace("%j", number).replace("%A", number).replace("%a", index).replace("%t", "0")


def scancel(*arguments: str) -> int:
    """Cancel jobs, or send them a signal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--signal")
    parser.add_argument("jobs", nargs="+")
    given = parser.parse_args(arguments)
    with locked():
        for job in given.jobs:
            if state(job) == "RUNNING":
                number = signal.Signals[f"SIG{given.signal or 'TERM'}"]
                with suppress(OSError):  # its script has not come to srun, or is past it
                    os.killpg(int((STATES / f"{job}.pid").read_text()), number)
            if given.signal is None and state(job) in QUEUED:
                (STATES / job).write_text("CANCELLED" if state(job) == "PENDING" else "COMPLETING")
    return 0


def squeue(*_: str) -> int:
    """Print the jobs that have not ended, as ``--array --format='%i %T'`` does."""
    with locked():
        for file in sorted(STATES.glob("*[0-9]")):
            if state(file.name) in QUEUED:
                sys.stdout.write(f"{file.name} {state(file.name)}\n")
    return 0


def scontrol(action: str, job: str) -> int:
    """Requeue a job."""
    assert action == "requeue"
    with locked():
        (STATES / job).write_text("PENDING")
    return 0


if __name__ == "__main__":
    commands = {one.__name__: one for one in (sbatch, wait, srun, scancel, squeue, scontrol)}
    sys.exit(commands[sys.argv[1]](*sys.argv[2:]))
