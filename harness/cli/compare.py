"""``harness compare``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import option as o
from harness.cli.files import JsonRows, OnlyTasks, OtherMetric
from harness.cli.output import (
    FIGURES,
    check_output_file,
    choose_format,
    echo,
    format_suffixes,
    reporting_broken_plugins,
    write_or_print,
    write_rows,
)
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.metrics.metric import Metric
    from harness.reporting.blocks.model import Block
    from harness.running.session import Session
    from harness.storage.run_folder import Run
    from harness.table import NamedTable

    Rows = Sequence[Mapping[str, Any]]
    Shown = tuple[Rows, Callable[[], list[Block]], Callable[[], Any], Callable[[str], str]]
    """The rows, and what makes the blocks, the figure, and the other formats by name."""

FORMATS = format_suffixes("console", "latex", "markdown", "csv", *FIGURES)
TABLES = ("latex", "csv")
PUBLISHED = (
    "--with-published shows printed scores, which have no items: it",
    "It has --tasks, --languages, --json, and the formats console, latex, markdown and csv.",
)
HISTORY = (
    "--history shows series over time and",
    "It has --json, and the formats console, markdown, svg, pdf and png.",
)
WIDTH = 100
"""Columns of a text that is written into a file."""
Format = Annotated[
    str | None, typer.Option("--format", "-f", help="console, latex, markdown, csv, svg, pdf or png.")
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "--out", help="Write to this file; its suffix is the format by default."),
]
app = typer.Typer(add_completion=False)


@app.command()
def compare(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders; the others are compared with the first."),
    ],
    tasks: OnlyTasks = None,
    languages: Annotated[
        list[str] | None, typer.Option("--languages", "-l", help="Only these codes.")
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Show the runs of a model line over time, or those of a folder.")
    ] = False,
    metric: OtherMetric = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Reject systems whose items, data or version of a task differ.")
    ] = False,
    with_published: Annotated[
        bool,
        typer.Option("--with-published", help="Show the runs under the published scores on their tasks."),
    ] = False,
    items_file: Annotated[
        Path | None, typer.Option("--items", help="Write the ids that all or none have right, as JSON.")
    ] = None,
    json_file: JsonRows = None,
    format_name: Format = None,
    output: Output = None,
    allow_code: o.AllowCode = False,
) -> None:
    """Compare the systems of runs on the items that all of them answered; needs no model and no data.

    Example: harness compare runs/e5-small runs/smollm2 --tasks xnli
    """
    from harness.running.session import open_session
    from harness.specs.selection import language_codes, split_names

    check_output_file(items_file, ".json")
    format_name = choose_format(format_name, output, FORMATS)
    check_output_file(output)
    session = open_session(allow_code=allow_code)
    only = {"tasks": split_names(tasks or []), "languages": language_codes(languages), "metric": metric}
    with reporting_broken_plugins(session.registry.plugins):
        if with_published:
            options = {"--history": history, "--strict": strict, "--items": items_file, "--metric": metric}
            _check_options(PUBLISHED, options, format_name, FIGURES)
            comparison = _published(folders, session, only)
        elif history:
            _check_options(HISTORY, {"--strict": strict, "--items": items_file}, format_name, TABLES)
            comparison = _history(folders, session.registry.metrics, only)
        else:
            comparison = _systems(folders, session.registry.metrics, {**only, "strict": strict}, items_file)
    _show(format_name, output, json_file, *comparison)


def _check_options(
    words: tuple[str, str], options: Mapping[str, object], format_name: str, unsupported: Collection[str]
) -> None:
    """Raise `UsageError` for options and formats that a comparison does not have: its words say what it is and has."""
    rejected = [name for name, value in options.items() if value]
    rejected += [f"--format {format_name}"] if format_name in unsupported else []
    if rejected:
        raise UsageError(f"{words[0]} has no {' '.join(rejected)}.", hint=words[1])


def _systems(
    folders: Sequence[Path], metrics: NamedTable[Metric], only: Mapping[str, Any], items_file: Path | None
) -> Shown:
    """Compare the systems of runs, and write the ids of the items that all or none have right."""
    from harness.analysis.comparison import compare as compare_runs
    from harness.cli.live import show_steps
    from harness.reporting.comparison.comparison import comparison_blocks, comparison_rows, item_rows
    from harness.reporting.comparison.paper import paper_text
    from harness.reporting.overview.figures import forest_figure
    from harness.storage.run_folder import Run

    runs = [Run(folder) for folder in folders]
    if len({folder.resolve() for folder in folders}) == 1 and _is_one_system(runs[0]):
        raise UsageError(
            f"A comparison needs two runs, and only {str(folders[0])!r} is given.",
            hint=f"Name a second one: harness compare {folders[0]} OTHER-RUN",
        )
    with show_steps():
        compared = compare_runs(runs, metrics, **only)
    write_rows(items_file, item_rows(compared.tasks))
    return (
        comparison_rows(compared.tasks),
        partial(comparison_blocks, compared),
        partial(forest_figure, compared),
        partial(paper_text, compared, metrics),
    )


def _is_one_system(run: Run) -> bool:
    """Return whether all cells of a run differ in task, language and seed alone: there is nothing to compare."""
    ways = {
        (cell.task, str(cell.protocol), str(cell.method), tuple(sorted(cell.view.items())))
        for cell in run.cells
    }
    return len(ways) == len({task for task, *_ in ways})


def _published(folders: Sequence[Path], session: Session, only: Mapping[str, Any]) -> Shown:
    """Read the published scores on the tasks of runs."""
    from harness.reporting.overview.paper_tables import (
        published_blocks,
        published_cells,
        read_published_tables,
    )
    from harness.running.manifest import published_documents
    from harness.storage.run_folder import Run

    runs = [Run(folder) for folder in folders]
    suites = list({suite.suite: suite for run in runs for suite in run.manifest.suites}.values())
    names = {task for run in runs for task in run.manifest.tasks}
    documents = published_documents(session.catalog, suites, names)
    tables = read_published_tables(runs, documents, tasks=only["tasks"], languages=only["languages"])
    sample = any(run.results.run.data == "sample" for run in runs)
    rows = published_cells(tables)
    blocks = partial(published_blocks, tables, session.registry.metrics, sample=sample)
    return rows, blocks, blocks, partial(_text, rows, blocks)


def _history(folders: Sequence[Path], metrics: NamedTable[Metric], only: Mapping[str, Any]) -> Shown:
    """Read the series of a model line."""
    from harness.analysis.history import history_runs, read_histories
    from harness.cli.live import show_steps
    from harness.reporting.comparison.history import history_blocks, history_figure

    runs = history_runs(folders)
    with show_steps():
        histories = read_histories(runs, metrics, **only)
    sample = any(run.results.run.data == "sample" for run in runs)
    blocks = partial(history_blocks, histories, sample=sample)
    figure = partial(history_figure, histories, sample=sample)
    rows = [row for series in histories for row in series.rows()]
    return rows, blocks, figure, partial(_text, rows, blocks)


def _text(rows: Rows, blocks: Callable[[], list[Block]], format_name: str) -> str:
    from harness.reporting.render.text import csv_text, render_latex, render_markdown

    if format_name == "csv":
        return csv_text(rows)
    return render_latex(blocks()) if format_name == "latex" else render_markdown(blocks())


def _show(
    format_name: str,
    output: Path | None,
    json_file: Path | None,
    rows: Sequence[Mapping[str, Any]],
    blocks: Callable[[], list[Block]],
    figure: Callable[[], Any],
    text: Callable[[str], str],
) -> None:
    """Print a comparison, or write it into a file, from what makes its blocks, its figure and its other formats."""
    from harness.cli.display import print_report
    from harness.reporting.render.console import print_blocks

    write_rows(json_file, rows)
    if format_name in FIGURES and output is not None:
        figure().save(output, format_name)
    elif format_name == "console" and output is None:
        print_report(blocks())
    else:
        rendered = print_blocks(blocks(), width=WIDTH) if format_name == "console" else text(format_name)
        write_or_print(output, rendered)
    if output is not None:
        echo(f"wrote {output}")
