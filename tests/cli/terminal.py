"""A terminal for tests: a pseudo-terminal, and a screen that wraps, scrolls and is made narrower as terminals do."""

from __future__ import annotations

import codecs
import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

PATIENCE = 120.0
"""Seconds after which a test gives a command up."""
REST = 0.05
"""Seconds without output after which a frame is whole; the panel writes four a second."""
_TOKEN = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b.|[\x00-\x1f\x7f]|[^\x00-\x1f\x7f]+")
_BOOTSTRAP = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


@dataclass(slots=True)
class Row:
    """One row of the screen; `wraps` where its text continues in the next row."""

    text: str = ""
    wraps: bool = False


@dataclass(slots=True)
class Screen:
    """What a terminal shows, with all that scrolled away; it knows the sequences that are used, and no others."""

    columns: int
    rows: list[Row] = field(default_factory=lambda: [Row()])
    row: int = 0
    column: int = 0
    shows_cursor: bool = True

    @property
    def lines(self) -> list[str]:
        """The rows without the blank ones at the end."""
        found = [row.text.rstrip() for row in self.rows]
        while found and not found[-1]:
            found.pop()
        return found

    def feed(self, text: str) -> None:
        """Show what a command wrote."""
        for token in _TOKEN.finditer(text):
            whole = token[0]
            if token[2]:
                self._control(token[1], token[2])
            elif whole == "\n":
                self._down()
            elif whole == "\r":
                self.column = 0
            elif whole >= " ":
                for character in whole:
                    self._put(character)
            else:
                raise AssertionError(f"an unknown control sequence: {whole!r}")

    def resize(self, columns: int) -> None:
        """Wrap all lines anew, as terminals do; the cursor stays at its character."""
        place = 0, 0
        lines: list[str] = [""]
        for number, row in enumerate(self.rows):
            if number == self.row:
                place = len(lines) - 1, len(lines[-1]) + self.column
            lines[-1] += row.text
            if not row.wraps:
                lines.append("")
        self.columns, self.rows = columns, []
        for number, line in enumerate(lines[:-1]):
            parts = [line[start : start + columns] for start in range(0, len(line), columns)] or [""]
            if number == place[0]:
                own = min(place[1] // columns, len(parts) - 1)
                self.row, self.column = len(self.rows) + own, place[1] - own * columns
            self.rows += [Row(part, part is not parts[-1]) for part in parts]

    def _put(self, character: str) -> None:
        if self.column == self.columns:
            self.rows[self.row].wraps = True
            self._down()
            self.column = 0
        row = self.rows[self.row]
        text = row.text.ljust(self.column)
        row.text = text[: self.column] + character + text[self.column + 1 :]
        self.column += 1

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append(Row())

    def _control(self, numbers: str, name: str) -> None:
        row = self.rows[self.row]
        if name == "A":
            self.row = max(0, self.row - int(numbers or 1))
        elif (name, numbers) == ("K", "2"):
            row.text, row.wraps = "", False
        elif numbers == "?25":
            self.shows_cursor = name == "h"
        else:
            assert name == "m", f"an unknown control sequence: {numbers}{name}"


class Terminal:
    """A Python command with a terminal of its own, in which Ctrl-C is a key."""

    def __init__(self, *arguments: object, columns: int = 80, environment: Mapping[str, str]) -> None:
        self.screen = Screen(columns)
        self.output = ""
        """All that the command wrote, with its control sequences."""
        self._master, slave = os.openpty()
        self._size(columns)
        attributes = termios.tcgetattr(slave)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        hidden = {"NO_COLOR", "COLUMNS", "LINES", "TERMINAL_WIDTH", "FORCE_COLOR"}
        own = {name: value for name, value in os.environ.items() if name not in hidden}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOTSTRAP, *map(str, arguments)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**own, "TERM": "xterm-256color", **environment},
        )
        os.close(slave)
        self._pending = b""

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Read until a condition holds and the frame that shows it is whole."""
        began = time.monotonic()
        while not condition():
            assert self._read(), f"{what}: the command ended before, with {self.screen.lines}"
            assert time.monotonic() - began < PATIENCE, f"{what}: not seen in {self.screen.lines}"
        while self._read(patience=REST):  # one frame may come in several pieces
            assert time.monotonic() - began < PATIENCE, f"{what}: the screen never rests"

    def shows(self, pattern: str) -> bool:
        """Return whether a line of the screen matches a pattern."""
        return any(re.search(pattern, line) for line in self.screen.lines)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def resize(self, columns: int) -> None:
        """Make the window narrower or wider, once all that was written is shown."""
        while self._read(patience=0.0) and select.select([self._master], [], [], 0.0)[0]:
            pass
        self.screen.resize(columns)
        self._size(columns)

    def wait(self) -> int:
        """Read to the end and return the exit status."""
        while self._read():
            pass
        return self._process.wait(PATIENCE)

    def close(self) -> None:
        """End the command, if it has not ended."""
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def _size(self, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

    def _read(self, patience: float = PATIENCE) -> bool:
        """Show what comes next; return False at the end."""
        ready, _, _ = select.select([self._master], [], [], patience)
        if not ready:
            return patience == 0.0
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the command has closed its side
            return False
        self._pending += data
        text, self._pending = _whole(self._pending)
        self.output += text
        self.screen.feed(text)
        return bool(data)


def _whole(data: bytes) -> tuple[str, bytes]:
    """Return the text of whole characters and control sequences, and the bytes that wait for more."""
    escape = data.rfind(b"\x1b")
    begun = escape >= 0 and re.match(rb"\x1b\[[?0-9;]*[A-Za-z]", data[escape:]) is None
    known, rest = (data[:escape], data[escape:]) if begun else (data, b"")
    decoder = codecs.getincrementaldecoder("utf-8")()
    text = decoder.decode(known)
    return text, decoder.getstate()[0] + rest
