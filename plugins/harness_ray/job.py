"""The actor that runs one job on a node of the cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness_ray import watcher

GRACE = 120.0
"""Seconds that an interrupted command has to end by itself: it keeps the batch that is under way."""
SECONDS_BETWEEN_CHECKS = 0.1


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
