"""The processes of one run: how they are started, joined and stopped, and how they exchange what they found.

All processes walk through the same plan in the same order; each asks the model its share of the requests. A process
that fails says so in its next message, so that the others leave the same step instead of waiting for it. Ctrl-C once
ends the work in order, twice at once; so does SIGTERM, which schedulers send before they kill.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from harness.errors import HarnessError, StorageError, UsageError, require_extra
from harness.registry.declarations import Launcher
from harness.registry.registry import Registry

_GOOD, _FAILED, _UNKEPT, _STOPPED = b"g", b"f", b"u", b"s"
STATUS_VARIABLE = "HARNESS_STATUS_FOLDER"
"""Names the folder in which processes that the harness started itself leave their ids, and the first its status."""
PARENT_LOCK = "parent.lock"
"""Held in that folder by the command that started the processes, for as long as it lives."""
SAME_WISH = 2.0
"""Seconds within which a second signal is the same one: a launcher passes on what the terminal sent to all."""


class Processes(Protocol):
    """The processes that one run was started with."""

    rank: int
    """Number of this process, from 0; process 0 writes the results."""
    count: int

    def gather(self, message: bytes) -> list[bytes]:
        """Return the messages of all processes, by rank; every process calls it equally often."""

    def close(self) -> None:
        """Leave; a second call does nothing."""


class OneProcess:
    """A run that is alone."""

    rank = 0
    count = 1

    def gather(self, message: bytes) -> list[bytes]:
        """Return the message."""
        return [message]

    def close(self) -> None:
        """Do nothing."""


def launched() -> bool:
    """Return whether a launcher (torchrun, accelerate) started this process, as its environment says."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 or "ACCELERATE_MIXED_PRECISION" in os.environ


class PeerError(HarnessError):
    """Another process failed at this step."""


class PeerStorageError(PeerError, StorageError):
    """Another process cannot keep what it does any more: all of them end."""


class ProcessGroup:
    """The processes of a run, kept in step."""

    def __init__(self, processes: Processes | None = None) -> None:
        self._processes = processes or OneProcess()
        self.rank = self._processes.rank
        self.count = self._processes.count
        self._reported: BaseException | None = None
        self._over = False

    @property
    def is_main(self) -> bool:
        """Whether this process writes the results."""
        return self.rank == 0

    @property
    def is_single(self) -> bool:
        """Whether there are no other processes."""
        return self.count == 1

    def gather(self, body: bytes) -> list[bytes]:
        """Return the messages of all processes, by rank; raises `PeerError` or `KeyboardInterrupt` where one failed."""
        if self.is_single:
            return [body]
        return self._read(self._processes.gather(_GOOD + body))

    def share(self, value: Any) -> Any:
        """Return the leading process's value, which is plain JSON."""
        if self.is_single:
            return value
        return json.loads(self.gather(json.dumps(value).encode() if self.is_main else b"null")[0])

    def wait(self) -> None:
        """Return once all processes are here."""
        self.gather(b"")

    @contextmanager
    def collective(self) -> Iterator[None]:
        """Hold a piece of work that all processes do: where one fails or stops, all leave it.

        The error is raised as it is in the process that failed, and as `PeerError` in the others: `PeerStorageError`
        where it is a `StorageError`. `KeyboardInterrupt` is raised in all. Steps may lie within steps.
        """
        try:
            yield
        except PeerError:
            raise
        except BaseException as error:
            self._report(error)
            raise
        self.wait()

    def close(self) -> None:
        """Leave the other processes; a second call does nothing."""
        self._processes.close()

    def _report(self, error: BaseException) -> None:
        """Report an error to the others, once, and none after one that ends the run."""
        if self.is_single or self._over or error is self._reported:
            return
        self._reported = error
        sign, reason, hint = _FAILED, f"{type(error).__name__}: {error}", None
        if isinstance(error, KeyboardInterrupt):
            sign = _STOPPED
        elif isinstance(error, StorageError):
            sign, reason, hint = _UNKEPT, error.message, error.hint
        elif isinstance(error, HarnessError):
            reason = str(error)
        messages = self._processes.gather(sign + json.dumps([reason, hint]).encode())
        if self._note(messages) and sign == _FAILED:
            self._read(messages)

    def _read(self, messages: list[bytes]) -> list[bytes]:
        """Return the sent message; where several failed, all processes raise for the same one."""
        self._note(messages)
        for sign in (_STOPPED, _UNKEPT, _FAILED):
            for rank, message in enumerate(messages):
                if message[:1] == sign:
                    if sign == _STOPPED:
                        raise KeyboardInterrupt
                    reason, hint = json.loads(message[1:])
                    peer = PeerStorageError if sign == _UNKEPT else PeerError
                    raise peer(f"Process {rank} failed: {reason}", hint=hint)
        return [message[1:] for message in messages]

    def _note(self, messages: list[bytes]) -> bool:
        """Note and return whether the run ends, in every process: nothing is reported any more."""
        self._over = self._over or any(message[:1] in {_UNKEPT, _STOPPED} for message in messages)
        return self._over


def join_processes(registry: Registry, *, wanted: int | None = None, cpu: bool = False) -> ProcessGroup:
    """Return the processes that this one was started with; alone where no launcher started it.

    Raises `UsageError` where their number is not the one that was asked for.
    """
    if not launched():
        if wanted is not None and wanted > 1:
            raise UsageError(
                f"{wanted} processes were asked for, but this is one, and no launcher started it.",
                hint="Start the program with torchrun or accelerate, or use the command: harness eval --num-processes.",
            )
        return ProcessGroup()
    launcher = _launcher(registry)
    processes = ProcessGroup(_load_target(launcher, launcher.join)(cpu=cpu))
    if wanted is not None and processes.count != wanted:
        processes.close()
        raise UsageError(
            f"--num-processes asks for {wanted} processes, but this launcher started {processes.count}.",
            hint=f"Omit one of the two: harness eval --num-processes {wanted} starts them itself.",
        )
    return processes


def needs_start(registry: Registry, count: int | None, options: Mapping[str, str]) -> bool:
    """Return whether the command has to start processes: for a number above 1 or a launcher's configuration."""
    return not launched() and ((count or 1) > 1 or _configuration(registry, options) is not None)


def start_processes(
    registry: Registry, arguments: Sequence[str], count: int | None, options: Mapping[str, str]
) -> int:
    """Run ``harness ARGUMENTS`` in several processes of this machine and return the exit status."""
    launcher = _launcher(registry)
    status: int = _load_target(launcher, launcher.start)(arguments, count, _configuration(registry, options))
    return status


def _configuration(registry: Registry, options: Mapping[str, str]) -> str | None:
    """Return the configuration file that the options of the model name for the launcher."""
    names = [launcher.option for launcher in list(registry.launchers)[:1] if launcher.option is not None]
    return options.get(names[0]) if names else None


def leave_status(status: int) -> int:
    """Return the exit status of this process; where the harness started it, the true one is left in a file.

    A launcher takes any other status than 0 for a crash and kills the processes that are still writing.
    """
    folder = os.environ.get(STATUS_VARIABLE)
    if folder is None:
        return status
    if os.environ.get("RANK", "0") == "0":
        (Path(folder) / "status").write_text(str(status), encoding="ascii")
    return 0


def _launcher(registry: Registry) -> Launcher:
    launchers: list[Launcher] = list(registry.launchers)
    if not launchers:
        raise UsageError(
            "No plugin can run several processes.",
            hint="Run: pip install 'multilingual-harness[hf]', and leave HARNESS_DISABLE_PLUGINS unset.",
        )
    return launchers[0]


def _load_target(launcher: Launcher, target: str) -> Any:
    module_name, _, attribute = target.partition(":")
    with require_extra("Running several processes", launcher.extra, target):
        return getattr(importlib.import_module(module_name), attribute)


class Interrupted(KeyboardInterrupt):
    """A run was stopped by the user after the batch that was under way."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message


class Interruption:
    """Whether the user wants the run to stop."""

    def __init__(self, announce: Callable[[str], None] = lambda _: None) -> None:
        self._announce = announce
        self._asked: float | None = None
        self._is_immediate = False

    def requested(self) -> bool:
        """Return whether the run must stop after the current batch."""
        return self._asked is not None

    def check(self) -> None:
        """Raise `Interrupted` where the run must stop."""
        if self.requested():
            raise Interrupted

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM as a wish to stop; only in the main thread, elsewhere nothing changes."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number, handler in former.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, self._receive)
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    @contextmanager
    def immediate(self) -> Iterator[None]:
        """Let the first signal raise `KeyboardInterrupt`: for waits in which there are no answers to keep."""
        self.check()
        former, self._is_immediate = self._is_immediate, True
        try:
            yield
        finally:
            self._is_immediate = former

    def _receive(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._asked is None:
            self._asked = now
            if self._is_immediate:
                raise KeyboardInterrupt
            self._announce("Stopping after what is under way. Press Ctrl-C again to stop at once.")
        elif not launched() or now - self._asked > SAME_WISH:
            raise KeyboardInterrupt
