"""Commands in processes of their own: started, watched, killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATIENCE = 300.0
"""Seconds after which a test gives a process up; on a machine that is not busy, none takes a tenth of it."""
HERE = Path(__file__).parent


def wait_until(condition: Callable[[], Any], what: str, *, patience: float = PATIENCE) -> float:
    """Return the seconds until a condition held; fails where it never did."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < patience, f"{what}: not within {patience:g} seconds"
        time.sleep(0.005)
    return time.monotonic() - began


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One command that was started."""

    folder: Path
    """Holds what it writes to its output."""
    pid: int
    process: subprocess.Popen[bytes] | None = None
    began: float = field(default_factory=time.monotonic)

    @property
    def out(self) -> str:
        return (self.folder / "stdout").read_text(encoding="utf-8", errors="replace")

    @property
    def err(self) -> str:
        return (self.folder / "stderr").read_text(encoding="utf-8", errors="replace")

    def status(self) -> int | None:
        """Return its exit status, negative where a signal ended it; None while it runs."""
        if self.process is not None:
            return self.process.poll()
        file = self.folder / "status"
        return int(file.read_text(encoding="ascii")) if file.is_file() else None

    def wait(self, patience: float = PATIENCE) -> int:
        wait_until(lambda: self.status() is not None, f"end of a command, which said {self.err!r}")
        status = self.status()
        assert status is not None
        return status

    def until(self, condition: Callable[[], Any], what: str) -> None:
        """Wait for a condition; fails where the command ends before."""
        wait_until(lambda: condition() or self.status() is not None, what)
        assert self.status() is None, f"{what}: the command ended before, and said {self.err!r}"

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it and all that it started as kill -9 does, and wait for that."""
        for pid in [self.pid, *descendants(self.pid)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.wait()


class Commands:
    """Starts ``harness`` commands with a cache of their own; warm ones skip the imports, and are quick."""

    def __init__(self, folder: Path, server: subprocess.Popen[bytes], environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self._server = server
        self._environment = dict(environment)
        self._attempts: list[Attempt] = []

    def start(
        self,
        *arguments: object,
        faults: Mapping[str, Any] | None = None,
        cache: Path | None = None,
        cold: bool = False,
    ) -> Attempt:
        """Start a command; a cold one is ``python -m harness``, in a session of its own."""
        folder = self.folder / "attempts" / str(len(self._attempts))
        folder.mkdir(parents=True)
        for name in ("stdout", "stderr"):
            (folder / name).touch()
        environment = {
            "HARNESS_CACHE": str(cache or self.cache),
            "HARNESS_TEST_FAULTS": json.dumps(dict(faults or {})),
        }
        given = [str(argument) for argument in arguments]
        attempt = (self._cold if cold else self._warm)(given, environment, folder)
        self._attempts.append(attempt)
        return attempt

    def run(self, *arguments: object, **settings: Any) -> Attempt:
        """Run a command to its end."""
        attempt = self.start(*arguments, **settings)
        attempt.wait()
        return attempt

    def close(self) -> None:
        """End what a failed test left behind."""
        for attempt in self._attempts:
            if attempt.status() is None:
                attempt.kill()

    def _warm(self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> Attempt:
        order = {"arguments": arguments, "environment": environment, "folder": str(folder)}
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(order).encode() + b"\n")
        self._server.stdin.flush()
        wait_until((folder / "pid").is_file, "start of a command")
        return Attempt(folder=folder, pid=int((folder / "pid").read_text(encoding="ascii")))

    def _cold(self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> Attempt:
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", "harness", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**self._environment, **environment},
                start_new_session=True,
            )
        return Attempt(folder=folder, pid=process.pid, process=process)


def command_environment(temporary: Path) -> dict[str, str]:
    """Return the environment of the commands: one thread, no network, and the faults of this folder."""
    path = [str(HERE / "site"), *(os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    settings = {
        "PYTHONPATH": os.pathsep.join(part for part in path if part),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TMPDIR": str(temporary),
    }
    return {**os.environ, **settings}


def descendants(pid: int) -> list[int]:
    """Return the processes that a process started, and those that they did."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                parent = int((folder / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            parents.setdefault(parent, []).append(int(folder.name))
    found, left = [], [pid]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found
