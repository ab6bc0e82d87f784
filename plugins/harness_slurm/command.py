"""The command of one job inside Slurm: what submitit stores, runs, and continues when time runs out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from submitit.core.utils import DelayedSubmission

from harness import HarnessError
from harness.registry import JobState
from harness.storage import write_atomically

STATUS = "slurm-status.json"
"""In the folder of a job: its exit status, null as long as there is none; missing where it was never started."""
SPARE = 0.2
"""Part of the grace that is kept for requeueing."""
LOOK = os.WEXITED | os.WNOWAIT | os.WNOHANG
IGNORING = ("sh", "-c", "trap '' USR1 USR2; exec \"$@\"", "sh")
"""Slurm sends the warning to all processes of a job; only submitit's may act on it."""


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
        write_atomically(Path(self.folder) / STATUS, json.dumps({"status": status}) + "\n")
