"""How commands show plans, progress and results."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Column, Table

from harness.cli.output import printable, write_rows
from harness.storage.clean_text import redact

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import ConsoleOptions, RenderableType
    from rich.progress import TaskID

    from harness.planning.plan import Plan
    from harness.reporting.model import Block

__all__ = [
    "PLAIN_WIDTH",
    "ConsoleProgress",
    "PrintableConsole",
    "print_report",
    "show_plan",
    "show_run",
    "stderr",
    "stdout",
]

PLAIN_WIDTH = 100
"""Columns of what is written into a pipe."""
PLAIN_EVERY = 10.0
"""Seconds between two lines about the same piece of work where there is no terminal."""
WIDEST = 10_000
"""Columns of a line that no table needs."""
LEAST_DATA = 20
"""Columns of the files in the table of a plan."""


class PrintableConsole(Console):
    """A console that prints texts as `printable` makes them; colours and cursor are those of rich alone."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the segments of something that rich prints."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else printable(segment.text)
            yield segment if text == segment.text else Segment(text, segment.style)


def stdout() -> Console:
    """Return the console for results: the terminal's width, or 100 columns into a pipe."""
    return PrintableConsole(
        width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False, soft_wrap=False, emoji=False
    )


def stderr() -> Console:
    """Return the console for progress, warnings and plans."""
    return PrintableConsole(stderr=True, highlight=False, emoji=False)


class ConsoleProgress:
    """Bars with rates and an estimate in a terminal; plain lines elsewhere. Everything goes to stderr."""

    def __init__(self) -> None:
        self._console = stderr()
        self._live = self._console.is_terminal
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        self._bars = Progress(*columns, console=self._console, transient=True, disable=not self._live)
        self._task: TaskID | None = None
        self._title, self._unit, self._total, self._done = "", "", 0, 0
        self._started = self._last_line_at = 0.0

    def __enter__(self) -> ConsoleProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:  # where nothing was drawn, older versions of rich end a line that was never started
            self._bars.stop()

    def announce(self, message: str) -> None:
        """Print one line."""
        self._console.print(escape(redact(message)), soft_wrap=True)

    def start(self, title: str, total: int, unit: str) -> None:
        """Begin a bar."""
        self._title, self._unit, self._total, self._done = title, unit, total, 0
        self._started = self._last_line_at = time.monotonic()
        if self._live:
            # Only while a bar is needed: a model that is being trained shows its own.
            self._bars.start()
            self._task = self._bars.add_task(title, total=total, rate="")

    def advance(self, count: int) -> None:
        """Move the bar, or print a line if the last one is long ago."""
        self._done += count
        rate = self._done / max(time.monotonic() - self._started, 1e-6)
        if self._task is not None:
            self._bars.update(self._task, advance=count, rate=f"{rate:,.0f} {self._unit}/s")
        elif time.monotonic() - self._last_line_at > PLAIN_EVERY:
            self._last_line_at = time.monotonic()
            self.announce(f"{self._title}: {self._done:,} of {self._total:,} {self._unit}, {rate:,.0f}/s")

    def finish(self) -> None:
        """Remove the bar; without a terminal, print one line about what was done."""
        if self._task is not None:
            self._bars.stop()
            self._bars.remove_task(self._task)
            self._task = None
        elif self._total and self._done == self._total:
            seconds = time.monotonic() - self._started
            self.announce(f"{self._title}: {self._done:,} {self._unit} in {seconds:,.1f} s")
        self._total = 0


def print_report(blocks: Sequence[Block]) -> None:
    """Print blocks of a report."""
    from harness.reporting.console import render_blocks

    console = stdout()
    console.print(render_blocks(blocks, width=console.width))


def show_plan(plan: Plan, *, brief: bool) -> None:
    """Print what will be run, fitted and skipped; the brief form skips the table of cells."""
    from harness.planning.plan import grouped_reason

    console = stderr() if brief else stdout()
    cells = f"{len(plan.cells)} {'cell' if len(plan.cells) == 1 else 'cells'}"
    fits = f"{len(plan.fits)} {'model' if len(plan.fits) == 1 else 'models'} to fit"
    counts = f"{cells}, {fits}, {len(plan.skipped)} skipped"
    console.print(escape(f"{plan.model.reference} ({plan.model.description.adapter}): {counts}"))
    for fit in plan.fits:
        console.print(escape(f"  fit {fit.title}, recipe {fit.recipe}"), soft_wrap=True)
    for note in plan.notes:
        console.print(escape(f"  note: {note}"), soft_wrap=True)
    if not brief:
        _print_cells(console, plan)
    for task, reasons in _grouped_skips(plan):
        sentence = grouped_reason(reasons.values())
        console.print(escape(f"  skipped {task} {' '.join(reasons)}: {sentence}"), soft_wrap=True)


def _print_cells(console: Console, plan: Plan) -> None:
    """Print the table of cells; where it is wider than the console, its lines are longer: no name is cut."""
    views = ["\n".join(f"{name}={value}" for name, value in sorted(cell.view.items())) for cell in plan.cells]
    view = ("view",) if any(views) else ()
    heads = ("task", "language", *view, "protocol", "method", "fit", "seed", "split")
    data = Column("data", overflow="fold", min_width=LEAST_DATA)
    table = Table(*(Column(head, no_wrap=True) for head in heads), data, box=None)
    for cell, conditions in zip(plan.cells, views, strict=True):
        stages = "none" if cell.fit is None else "+".join(stage.name for stage in cell.fit.stages)
        files = cell.test.files
        how = (cell.pairing.protocol, cell.pairing.method.name, stages, str(cell.seed))
        split = files.split_used + ("*" if files.stands_in else "")
        shown = (escape(conditions),) if view else ()
        table.add_row(cell.spec.task, cell.language.code, *shown, *how, split, escape(files.describe))
    needed = Measurement.get(console, console.options.update(max_width=WIDEST), table).minimum
    console.width = max(console.width, needed)
    console.print(table)


def _grouped_skips(plan: Plan) -> list[tuple[str, dict[str, str]]]:
    """Return the task and the reason of every language for each group that is skipped for the same reason."""
    from harness.planning.plan import reason_without_language

    groups: dict[tuple[str, str], dict[str, str]] = {}
    for skip in plan.skipped:
        shape = reason_without_language(skip.reason, skip.language)
        groups.setdefault((skip.task, shape), {}).setdefault(skip.language, skip.reason)
    return [(task, reasons) for (task, _), reasons in groups.items()]


def show_run(folder: Path, json_file: Path | None = None) -> int:
    """Print the summary of a run folder and of its baselines; return 1 where a cell failed, else 0."""
    from harness.reporting.rows import cell_rows
    from harness.reporting.sections import installed_sections
    from harness.reporting.summary import summarise
    from harness.reporting.summary_blocks import terminal_blocks
    from harness.storage.run_folder import Run, with_baselines

    console = stdout()
    runs = with_baselines(Run(folder))
    summary = summarise(runs, sections=installed_sections())
    print_report(terminal_blocks(summary, width=console.width))
    console.print(escape(f"Run folder: {folder}   Show it again: harness report {folder}"), soft_wrap=True)
    if json_file is not None:
        write_rows(json_file, cell_rows(runs))
    return int(any(cell.status == "failed" for run in runs for cell in run.cells))
