"""Progress of a command: one panel in a terminal, a few plain lines elsewhere. All of it on stderr."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

from harness.cli.display import stderr
from harness.cli.panel import WIDEST, Panel, tally_lines
from harness.cli.tally import Step, Tally, cell_text, status_text, step_text, task_text, whole_text
from harness.planning.plan import reason_without_language
from harness.progress import CellOutcome, PlannedCell, PlannedFit, Progress, showing_steps
from harness.reporting.blocks.words import counted
from harness.storage.redaction import redact

UPDATE_EVERY = 0.25
"""Seconds between two states of the progress in a notebook."""
TICK = 1.0
"""Seconds after which work without units, such as opening a model, is named."""
LINE_EVERY = 10.0
"""Seconds between two lines about unfinished work where there is no terminal."""


@contextmanager
def show_progress(*, verbose: bool = False) -> Iterator[Progress]:
    """Yield the progress display on stderr; a panel is gone afterwards.

    Args:
        verbose: Print a line for every cell, and the details that are otherwise left to the run's notes.
    """
    console = stderr()
    if not (console.is_terminal and sys.stderr.isatty()) or console.is_dumb_terminal:
        progress = LineProgress(verbose=verbose)
        with _ticking(progress):
            yield progress
        return
    with Panel(sys.stderr) as panel:
        yield PanelProgress(panel, verbose=verbose)


@contextmanager
def _ticking(progress: LineProgress) -> Iterator[None]:
    """Let lines be printed also while a model is opened, or anything else takes long without a word."""
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(TICK):
            progress.tick()

    thread = threading.Thread(target=tick, name="harness-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def show_steps() -> Iterator[None]:
    """Show the steps of what is done inside; what takes less than ten seconds prints nothing into a pipe."""
    with show_progress() as progress, showing_steps(progress.status):
        yield


@contextmanager
def show_in_program() -> Iterator[Progress]:
    """Yield the progress display of a Python call: a notebook's own output, a panel in a terminal, or nothing."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None:
        progress = NotebookProgress(_notebook_output())
        yield progress
        progress.close()
    elif sys.stderr.isatty():
        with show_progress() as panel:
            yield panel
    else:
        yield Progress()


def _notebook_output() -> Callable[[str], None]:
    """Return the function that shows a text in the output of a notebook's cell, in the place of the text before."""
    from IPython.display import display

    handle = display({"text/plain": ""}, raw=True, display_id=True)
    return lambda text: handle.update({"text/plain": text}, raw=True)


class LineProgress(Progress):
    """Prints a line for every task that is finished, and one now and then in between."""

    def __init__(self, *, verbose: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self.tally = Tally(clock=clock)
        self._verbose = verbose
        self._clock = clock
        self._console = stderr()
        self._printed_at = clock()
        self._failures: set[tuple[str, str]] = set()
        self._named: Step | None = None

    def tick(self) -> None:
        """Name work without units once; print a line about unfinished work if the last one is long ago."""
        step = self.tally.step
        if step is None or step.unit or step is self._named or self._clock() - step.started < TICK:
            self._print_if_due()
        else:
            self._named = step
            self._report(f"{step.title}.")

    def announce(self, message: str) -> None:
        """Print one line."""
        print_line(self._console, message)
        self._printed_at = self._clock()

    def mention(self, message: str) -> None:
        """Print one line where every detail is wanted."""
        if self._verbose:
            self.announce(message)

    def status(self, message: str) -> None:
        """Keep what the next line about unfinished work shows."""
        self.tally.report_status(message)
        self._print_if_due()

    def plan(
        self,
        model: str,
        cells: Sequence[PlannedCell],
        fits: Sequence[PlannedFit] = (),
        done: Sequence[CellOutcome] = (),
    ) -> None:
        """Begin a model; the line of a further one, a baseline, names it."""
        if self.tally.model:
            self._report(f"{model}: {counted(len(cells) - len(done), 'cell')}")
        self.tally = Tally(model, cells, fits, done, clock=self._clock)
        self._failures = set()

    def fit_started(self, digest: str, title: str) -> None:
        """Print what is trained."""
        self.tally.fit_started(digest, title)
        self._report(f"Fine-tuning on {title}.")

    def fit_finished(self, digest: str, *, failed: bool = False) -> None:
        """End a training."""
        self.tally.fit_finished(digest, failed=failed)

    def cell_started(self, digest: str) -> None:
        """Begin a cell."""
        self.tally.cell_started(digest)
        self._print_if_due()

    def cell_finished(self, outcome: CellOutcome) -> None:
        """Print why a cell failed, each reason once a task; and its task where it was the last cell."""
        self.tally.cell_finished(outcome)
        cell = self.tally.cells.get(outcome.digest)
        if cell is None:
            return
        if outcome.failure:
            self._print_failure(cell, outcome.failure)
        else:
            self.mention(cell_text(cell, outcome))
        ended = self.tally.of_task(cell.task)
        if ended is not None:
            self._report(task_text(ended, self.tally.seconds_of(cell.task)))

    def start(self, title: str, total: int, unit: str, done: int = 0) -> None:
        """Begin a piece of work."""
        self.tally.start(title, total, unit, done)

    def advance(self, count: int) -> None:
        """Print a line if the last one is long ago."""
        if self.tally.step is not None:
            self.tally.step.advance(count, self._clock())
            self._print_if_due()

    def finish(self) -> None:
        """End a piece of work; outside a run, print a line about what was done."""
        step, self.tally.step = self.tally.step, None
        if step is not None and not self.tally.model and step.done and step.done >= step.total:
            seconds = self._clock() - step.started
            self._report(f"{step.title}: {step.done:,} {step.unit} in {seconds:,.1f} s")

    def _report(self, message: str) -> None:
        """Print a line that a panel shows in its own way."""
        self.announce(message)

    def _print_failure(self, cell: PlannedCell, reason: str) -> None:
        shape = (cell.task, reason_without_language(reason, cell.language))
        report = self.mention if shape in self._failures else self.announce
        self._failures.add(shape)
        report(f"{cell.task}:{cell.language} failed: {reason}")

    def _print_if_due(self) -> None:
        if self._clock() - self._printed_at >= LINE_EVERY:
            texts = (whole_text(self.tally), step_text(self.tally), status_text(self.tally))
            if any(texts):
                self._report("; ".join(filter(None, texts)))


class PanelProgress(LineProgress):
    """Shows the run in a panel; above it only what has to be known at once, or every detail where it is wanted."""

    def __init__(self, panel: Panel, *, verbose: bool = False) -> None:
        super().__init__(verbose=verbose)
        self._panel = panel

    def announce(self, message: str) -> None:
        """Print one line above the panel."""
        self._panel.print(message)

    def status(self, message: str) -> None:
        """Show what the current work does now."""
        super().status(message)
        self._panel.show(self.tally)

    def plan(
        self,
        model: str,
        cells: Sequence[PlannedCell],
        fits: Sequence[PlannedFit] = (),
        done: Sequence[CellOutcome] = (),
    ) -> None:
        """Begin a model."""
        super().plan(model, cells, fits, done)
        self._panel.show(self.tally)

    def start(self, title: str, total: int, unit: str, done: int = 0) -> None:
        """Begin a piece of work."""
        super().start(title, total, unit, done)
        self._panel.show(self.tally)

    def finish(self) -> None:
        """End a piece of work; outside a run, the panel goes with it."""
        super().finish()
        if not self.tally.model:
            self._panel.hide()

    def _report(self, message: str) -> None:
        pass

    def _print_if_due(self) -> None:
        pass


class NotebookProgress(LineProgress):
    """Shows the run as one text that changes; at its end, what had to be known at once stays.

    Args:
        show: Shows a text in the place of the one before.
        clock: Seconds, as `time.monotonic`.
    """

    def __init__(self, show: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock=clock)
        self._show = show
        self._started = clock()
        self._announced: list[str] = []

    def announce(self, message: str) -> None:
        """Show one line above the progress."""
        self._announced.append(redact(message))
        self._update()

    def cell_finished(self, outcome: CellOutcome) -> None:
        """Show the score of a cell, or why it failed."""
        super().cell_finished(outcome)
        self._print_if_due()

    def close(self) -> None:
        """Show how much was done."""
        self._show("\n".join([*self._announced, *filter(None, [whole_text(self.tally)])]))

    def _report(self, message: str) -> None:
        pass

    def _print_if_due(self) -> None:
        if self._clock() - self._printed_at >= UPDATE_EVERY:
            self._update()

    def _update(self) -> None:
        self._printed_at = self._clock()
        lines = [line.plain for line in tally_lines(self.tally, WIDEST, self._started)]
        self._show("\n".join([*self._announced, *map(redact, lines)]))


def print_line(console: Console, message: str) -> None:
    """Print one line as it is, however long."""
    console.print(escape(redact(message)), soft_wrap=True)
