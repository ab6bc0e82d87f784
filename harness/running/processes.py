"""The processes of one run: how many there are, and how they exchange what they found.

All processes walk through the same plan in the same order; each asks the model its share of the requests. A process
that fails says so in its next message, so that the others leave the same step instead of waiting for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from harness.errors import HarnessError, StorageError

_GOOD, _FAILED, _UNKEPT, _STOPPED = b"g", b"f", b"u", b"s"


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
