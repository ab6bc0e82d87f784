"""Ctrl-C once ends the work in order, twice at once; so does SIGTERM, which schedulers send before they kill."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from harness.running.processes import launched

SAME_WISH = 2.0
"""Seconds within which a second signal is the same one: a launcher passes on what the terminal sent to all."""


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
