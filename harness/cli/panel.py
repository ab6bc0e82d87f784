"""The panel that a terminal shows while a command works, above which the output of others is printed."""

from __future__ import annotations

import io
import logging
import re
import sys
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from rich.cells import cell_len
from rich.markup import escape
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from harness.cli.display import PrintableConsole
from harness.cli.tally import duration, score_text, status_text, step_text, whole_text
from harness.storage.redaction import redact

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live

    from harness.cli.tally import Tally

WIDEST = 100
"""Columns of the panel in a wider terminal."""
LAST = 4
"""Scores that it shows."""
BAR = (10, 40)
"""Columns of the bar: fewer than the first are none."""
REFRESHES = 4
"""In a second."""
_CONTROL_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class Panel:
    """One panel at the bottom of a terminal, which other output scrolls past; it leaves nothing behind."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._console = PrintableConsole(file=stream, highlight=False, emoji=False)
        self._tally: Tally | None = None
        self._drawn: list[int] = []
        """Columns of the lines that were drawn last."""
        self._reported = ""
        """Message of other work on its own progress, such as a download."""
        self._started = time.monotonic()
        self._live: Live | None = None
        self._aside = _Aside(stream, line=self.print, status=self._take_status)

    def __enter__(self) -> Panel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hide()

    def show(self, tally: Tally) -> None:
        """Show a run, or work outside one, until `hide`."""
        self._tally = tally
        if self._live is None:
            from rich.live import Live

            self._aside.start()
            # A new one each time: a stopped one would erase as many lines as it had.
            self._live = Live(
                console=self._console,
                get_renderable=self._current,
                refresh_per_second=REFRESHES,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start(refresh=True)

    def hide(self) -> None:
        """Remove the panel."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()
            self._aside.stop()
            self._drawn = []

    def print(self, message: str) -> None:
        """Print one line above the panel."""
        if self._live is not None:
            self._live.refresh()
        self._console.print(escape(redact(message)), soft_wrap=True)

    def _take_status(self, text: str) -> None:
        self._reported = text

    def _current(self) -> Panel:
        self._erase_wrapped()
        return self

    def _erase_wrapped(self) -> None:
        """Erase the lines that a narrower terminal has made of the panel's: rich counts them as they were drawn."""
        width = self._console.width
        extra = sum(max(0, -(-length // width) - 1) for length in self._drawn)
        if extra:
            self._stream.write("\r\x1b[2K" + "\x1b[1A\x1b[2K" * extra)
            self._drawn = []

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width - 1, WIDEST)
        lines = []
        if self._tally is not None:
            lines = tally_lines(
                self._tally, width, self._started, ascii_only=options.ascii_only, reported=self._reported
            )
        lines = lines[: max(1, options.size.height - 1)]
        for line in lines:
            line.truncate(width, overflow="crop" if options.ascii_only else "ellipsis")
        self._drawn = [cell_len(line.plain) for line in lines]
        for number, line in enumerate(lines):
            if number:
                yield Segment.line()
            line.end = ""
            yield from console.render(line, options.update(no_wrap=True))


def tally_lines(
    tally: Tally, width: int, started: float, *, ascii_only: bool = False, reported: str = ""
) -> list[Text]:
    """Return how far a run is, one line each: the model with a bar, the current work, and the last scores.

    Args:
        tally: The run, or work outside one.
        width: Columns of the first line.
        started: When the run began, by `time.monotonic`.
        ascii_only: Whether the bar is made of ``#`` and ``-``.
        reported: What something else reports of its own work.
    """
    lines = [_head(tally, width, started, ascii_only=ascii_only)] if tally.cells else []
    step = step_text(tally)
    if step:
        lines.append(Text(step if not tally.cells else f"  {step}"))
    lines += [Text(f"  {text}", style="dim") for text in (status_text(tally), reported) if text]
    return lines + _last_scores(tally)


def _head(tally: Tally, width: int, started: float, *, ascii_only: bool) -> Text:
    position, model = whole_text(tally), tally.model
    if len(model) > width // 3:  # the end of a path says more than its beginning
        model = ("..." if ascii_only else "…") + model[3 - width // 3 :]
    so_far = f", {duration(time.monotonic() - started)} so far"
    if width - cell_len(model + position + so_far) >= BAR[0] * 2:
        position += so_far
    room = min(width - cell_len(model) - cell_len(position) - 4, BAR[1])
    head = Text(model, style="bold")
    if room >= BAR[0] and not tally.is_over:  # a full bar would stand still while the results are written
        full, empty = ("#", "-") if ascii_only else ("━", "─")
        done = int(room * tally.share)
        head.append("  ").append(full * done, Style(color="green", bold=False))
        head.append(empty * (room - done), Style(dim=True, bold=False))
    return head.append(f"  {position}", Style(bold=False))


def _last_scores(tally: Tally) -> list[Text]:
    """Return the last scores in columns, the newest first."""
    rows = [
        (cell.task, cell.language, score_text(outcome), cell.condition)
        for cell, outcome in reversed(tally.ended()[-LAST:])
    ]
    widths = [max((cell_len(row[column]) for row in rows), default=0) for column in range(2)]
    lines = []
    for task, language, score, condition in rows:
        line = Text("  ")
        line.append(task + " " * (widths[0] - cell_len(task)), "dim")
        line.append("  " + language + " " * (widths[1] - cell_len(language)))
        line.append(f"  {score}", "red" if score == "failed" else "")
        lines.append(line.append(f"  {condition}", "dim") if condition else line)
    return lines


class _Aside:
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
