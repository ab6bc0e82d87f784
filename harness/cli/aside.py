"""Text that others write to the terminal while it shows a panel: libraries' warnings, and bars of their own."""

from __future__ import annotations

import io
import logging
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

_CONTROL_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class Aside:
    """Takes what is written to stderr, and to stdout where it is the terminal too.

    A whole line is printed above the panel. A line that is redrawn, as a bar is, is shown in the panel.
    """

    def __init__(self, stream: TextIO, *, line: Callable[[str], None], status: Callable[[str], None]) -> None:
        self._stream = stream
        self._line = line
        self._status = status
        self._taken: list[tuple[str, TextIO, _Diverted]] = []

    def start(self) -> None:
        """Take the streams, also those that log handlers hold."""
        names = ["stderr", "stdout"] if sys.stdout.isatty() else ["stderr"]
        for name in names:
            former: TextIO = getattr(sys, name)
            diverted = _Diverted(former, self._line, self._status)
            self._taken.append((name, former, diverted))
            setattr(sys, name, diverted)
            _exchange(former, diverted)

    def stop(self) -> None:
        """Give the streams back; who still holds one of ours writes through it."""
        while self._taken:
            name, former, diverted = self._taken.pop()
            setattr(sys, name, former)
            _exchange(diverted, former)
            diverted.release()
        self._status("")


class _Diverted(io.TextIOBase):
    """A stream that gives whole lines to one function and lines that are redrawn to another."""

    def __init__(self, stream: TextIO, line: Callable[[str], None], status: Callable[[str], None]) -> None:
        self._stream = stream
        self._line = line
        self._status = status
        self._pending = ""
        self._is_released = False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the terminal."""
        return self._stream.encoding

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the stream."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Take a text; the rest after its last line end waits for more."""
        if self._is_released:
            return self._stream.write(text)
        *lines, pending = (self._pending + _CONTROL_SEQUENCE.sub("", text)).split("\n")
        for raw in lines:
            line = raw.removesuffix("\r")
            if "\r" in line:
                self._status("")  # a bar ends with its last state, which is no news
            elif line.strip():
                self._line(line)
        if "\r" in pending:
            states = [state.strip() for state in pending.split("\r")]
            self._status(states[-1] or (states[-2] if len(states) > 2 else ""))
            pending = "\r" + states[-1]
        self._pending = pending
        return len(text)

    def flush(self) -> None:
        """Flush the stream, where it is written to."""
        if self._is_released:
            self._stream.flush()

    def release(self) -> None:
        """From now on, write to the stream itself."""
        pending, self._pending, self._is_released = self._pending, "", True
        if pending.strip() and "\r" not in pending:
            self._stream.write(pending)


def _exchange(former: Any, new: Any) -> None:
    for handler in _stream_handlers():
        if handler.stream is former:
            handler.setStream(new)


def _stream_handlers() -> Iterator[logging.StreamHandler[Any]]:
    loggers = (logging.root, *logging.root.manager.loggerDict.values())
    for logger in loggers:
        for handler in logger.handlers if isinstance(logger, logging.Logger) else ():
            if isinstance(handler, logging.StreamHandler):
                yield handler
