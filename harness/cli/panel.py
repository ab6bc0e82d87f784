"""The panel that a terminal shows while a command works."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len
from rich.markup import escape
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from harness.cli.aside import Aside
from harness.cli.display import PrintableConsole
from harness.cli.progress_text import duration, score_text, status_text, step_text, whole_text
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
        self._aside = Aside(stream, line=self.print, status=self._take_status)

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
