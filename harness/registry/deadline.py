"""A time limit for third-party imports and declarations: what hangs is named, and interrupted where possible.

Only what a plugin does before it is asked to work is watched. Data may be downloaded and runs observed for hours.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

from harness.errors import UsageError

__all__ = ["TIMEOUT_VARIABLE", "HangingError", "Watch", "patience"]

TIMEOUT_VARIABLE = "HARNESS_PLUGIN_TIMEOUT"
USUAL_SECONDS = 5.0
AGAIN = 1.25
"""Seconds to the next interruption, if a plugin has swallowed the first; also distinguishes our timer from others."""
GRACE = 0.5
"""Seconds by which the thread waits longer than the timer: it is for what the timer could not interrupt."""
TICK = 0.1


class HangingError(BaseException):
    """Raised inside what hangs; no `Exception`, so that a plugin's own handlers let it pass."""


def patience() -> float:
    """Return the seconds that a plugin may take to be imported: 5, or what the environment says; 0 is no limit.

    Raises `UsageError` where the environment says no number.
    """
    given = os.environ.get(TIMEOUT_VARIABLE, "").strip()
    try:
        seconds = float(given) if given else USUAL_SECONDS
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise UsageError(
            f"{TIMEOUT_VARIABLE} must be a number of seconds, or 0 for no limit; found {given!r}."
        )
    return seconds


class Watch:
    """Watches one thing after another while it is open.

    In the main thread what takes too long is interrupted by `HangingError`, unless other code uses the alarm signal.
    Imports that make progress are not hanging: the limit counts from the last module that was imported. What cannot be
    interrupted, since it runs elsewhere or in C code, is reported by a thread.
    """

    def __init__(self, seconds: float, report: Callable[[str], None], *, interrupts: bool = True) -> None:
        """Take the limit, and what is called, in another thread, with the name of what cannot be interrupted."""
        self._seconds = seconds
        self._report = report
        self._interrupts = interrupts
        self._name: str | None = None
        self._may_interrupt: Callable[[], bool] = lambda: True
        self._since = 0.0
        self._modules = 0
        self._armed = False
        self._notes_stops = False
        self._stopped = False
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Watch:
        if _is_main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._stop)
            self._notes_stops = True
        if self._seconds:
            self._armed = self._interrupts and _alarm_is_free()
            if self._armed:
                signal.signal(signal.SIGALRM, self._interrupt)
            self._thread = threading.Thread(target=self._look, name="harness-plugin-watch", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._armed and self._is_ours():
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if self._notes_stops and signal.getsignal(signal.SIGINT) == self._stop:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def is_stop(self, error: BaseException) -> bool:
        """Return whether an error is the user's Ctrl-C, and not a plugin's own `KeyboardInterrupt`."""
        return isinstance(error, KeyboardInterrupt) and (self._stopped or not self._notes_stops)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopped = True
        signal.default_int_handler(number, frame)

    @contextmanager
    def over(self, name: str, may_interrupt: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """Watch what is done inside; raises `HangingError` there. `may_interrupt` is asked when time is over."""
        self._may_interrupt = may_interrupt
        self._modules = len(sys.modules)
        self._since = time.monotonic()
        self._name = name
        try:
            try:
                if self._armed and self._is_ours():
                    signal.setitimer(signal.ITIMER_REAL, self._seconds, AGAIN)
                yield
            finally:
                self._name = None
        finally:
            # A plugin may have set a timer of its own, which is left alone.
            if self._armed and signal.getitimer(signal.ITIMER_REAL)[1] == AGAIN:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def _is_ours(self) -> bool:
        # Every access makes another bound method, so only equality works.
        return signal.getsignal(signal.SIGALRM) == self._interrupt

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        left = self._seconds - self._idle()
        if left > 0:
            signal.setitimer(signal.ITIMER_REAL, left, AGAIN)
        elif self._name is not None and self._may_interrupt():
            raise HangingError

    def _idle(self) -> float:
        """Return the seconds since a module was imported, or the watching began."""
        now, count = time.monotonic(), len(sys.modules)
        if count != self._modules:
            self._modules, self._since = count, now
        return now - self._since

    def _look(self) -> None:
        reported = None
        while not self._ended.wait(TICK):
            name = self._name
            if self._idle() > self._seconds + GRACE and name not in (None, reported):
                reported = name
                self._report(str(name))


def _alarm_is_free() -> bool:
    """Return whether no other code in this process uses the alarm, and signals can be handled here at all."""
    return (
        hasattr(signal, "setitimer")
        and _is_main_thread()
        and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    )


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
