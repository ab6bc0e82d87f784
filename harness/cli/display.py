"""How commands show plans, progress and results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from harness.cli.output import echo, printable, write_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import ConsoleOptions, RenderableType

    from harness.planning.plan import Plan
    from harness.reporting.blocks.model import Block
    from harness.reporting.overview.summary_blocks import Grouping
    from harness.storage.run_folder import Run

PLAIN_WIDTH = 100
"""Columns of what is written into a pipe."""
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
    width = None if sys.stderr.isatty() else PLAIN_WIDTH
    return PrintableConsole(stderr=True, width=width, highlight=False, emoji=False)


def print_report(blocks: Sequence[Block], console: Console | None = None) -> None:
    """Print blocks of a report; to stdout where no console is given."""
    from harness.reporting.render.console import render_blocks

    console = console or stdout()
    console.print(render_blocks(blocks, width=console.width))


def show_plan(plan: Plan, *, details: bool = False, brief: bool = False) -> None:
    """Print what will be run, fitted and skipped.

    Args:
        plan: The plan.
        details: Whether every cell and the reason of everything skipped are shown.
        brief: Whether a run follows, whose summary says the rest: a few lines, to stderr.
    """
    from harness.reporting.blocks.model import Note
    from harness.reporting.overview.missing import announced_plan, plan_title, planned_details, planned_tasks

    if brief:
        print_report(announced_plan(plan), stderr())
        return
    console = stdout()
    print_report([Note(plan_title(plan), "heading")], console)
    if details:
        _print_cells(console, plan)
        for line in planned_details(plan):
            echo(line)
    else:
        print_report([*planned_tasks(plan), Note("Every cell and every reason: --details")], console)


def _print_cells(console: Console, plan: Plan) -> None:
    """Print the table of cells; where it is wider than the console, its lines are longer: no name is cut."""
    from harness.reporting.render.console import Trimmed

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
        view_column = (escape(conditions),) if view else ()
        table.add_row(cell.spec.task, cell.language.code, *view_column, *how, split, escape(files.describe))
    needed = Measurement.get(console, console.options.update(max_width=WIDEST), table).minimum
    wide = PrintableConsole(width=max(console.width, needed), highlight=False, emoji=False)
    wide.print(Trimmed(table))


def show_run(folder: Path, json_file: Path | None = None, *, details: bool = False) -> int:
    """Print the summary of a run folder and of its baselines; return 1 where a cell failed, else 0.

    Args:
        folder: The run folder.
        json_file: The file that the rows of the table are written to.
        details: Whether the tables by language come before the summary.
    """
    from harness.storage.run_folder import Run, with_baselines

    runs = with_baselines(Run(folder))
    show_runs(runs, details=details)
    further = "--notes" if details else "by language, or --notes"
    echo(f"Run folder: {folder}   More: harness report {folder} ({further})")
    if json_file is not None:
        from harness.reporting.render.text import cell_rows

        write_rows(json_file, cell_rows(runs))
    return int(any(cell.status == "failed" for run in runs for cell in run.cells))


def show_fits(folder: Path) -> int:
    """Print which models a run of ``--fits-only`` has; return 1 where one could not be trained, else 0."""
    from harness.cli.tally import duration
    from harness.reporting.blocks.words import counted
    from harness.storage.run_folder import Run

    run = Run(folder)
    for fit in run.results.fits.values():
        seconds = sum(stage["seconds"] for stage in fit.stages if not stage["reused"])
        how = f"trained in {duration(seconds)}" if seconds else "trained before, in the cache"
        echo(f"{fit.title}: {how}")
    failures = {cell.reason: cell for cell in run.cells if cell.status == "failed"}
    for reason, cell in failures.items():
        echo(f"{cell.task}:{cell.language}: not trained: {reason}")
    ready = counted(len(run.results.fits), "model")
    echo(f"{ready} ready, nothing scored yet. Score: harness eval --resume {folder}")
    return int(bool(failures))


def show_runs(runs: Sequence[Run], *, details: bool, by: Grouping = "family") -> None:
    """Print the summary of runs, with `details` after their tables by language."""
    from harness.reporting.overview.glance_blocks import glance_blocks
    from harness.reporting.overview.summary import summarise
    from harness.reporting.overview.summary_blocks import detail_blocks
    from harness.reporting.sections import installed_sections

    summary, width = summarise(runs, sections=installed_sections(in_terminal=True)), stdout().width
    tables = detail_blocks(summary, width=width, by=by) if details else []
    print_report([*tables, *glance_blocks(runs, summary, width=width, alone=not details)])


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, err: bool = False) -> None:
    """Print a plain table that folds long fields, to stderr where `err`.

    Control characters are shown, since names come from third parties.
    """
    table = Table(
        *(Column(Text(printable(head))) for head in heads), box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for row in rows:
        table.add_row(*(Text(printable(field)) for field in row))
    (stderr if err else stdout)().print(table)
