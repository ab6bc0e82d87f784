"""``harness compare``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import option as o

if TYPE_CHECKING:
    from harness.metrics.metric import Metric
    from harness.reporting.model import Block
    from harness.table import Table

    Shown = tuple[Callable[[], list[Block]], Callable[[], Any], Callable[[str], str]]
    """What makes the blocks, the figure, and the other formats by name."""

FIGURES = ("svg", "pdf", "png")
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
    tasks: Annotated[
        list[str] | None, typer.Option("--tasks", "-t", help="Only these tasks; names or globs.")
    ] = None,
    languages: Annotated[
        list[str] | None, typer.Option("--languages", "-l", help="Only these codes.")
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Show the runs of a model line over time, or those of a folder.")
    ] = False,
    metric: Annotated[
        str | None, typer.Option("--metric", help="Score with this one, not with the tasks' own.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Reject systems whose items, data or version of a task differ.")
    ] = False,
    items_file: Annotated[
        Path | None, typer.Option("--items", help="Write the ids that all or none have right, as JSON.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the rows to this file.")
    ] = None,
    format_name: Format = None,
    output: Output = None,
    allow_code: o.AllowCode = False,
) -> None:
    """Compare the systems of runs on the items that all of them answered; needs no model and no data.

    Example: harness compare runs/e5-small runs/smollm2 --tasks xnli
    """
    from harness.cli.output import check_output_file, reporting_broken_plugins
    from harness.running.session import open_session
    from harness.specs.selection import split_names

    check_output_file(items_file)
    check_output_file(json_file)
    format_name = _format(format_name, output)
    check_output_file(output)
    only = {"tasks": split_names(tasks or []), "languages": split_names(languages or []), "metric": metric}
    registry = open_session(allow_code=allow_code).registry
    with reporting_broken_plugins(registry.plugins):
        if history:
            _check_history(format_name, strict=strict, items=items_file)
            shown = _history(folders, registry.metrics, only, json_file)
        else:
            shown = _systems(folders, registry.metrics, {**only, "strict": strict}, json_file, items_file)
    _show(format_name, output, *shown)


def _systems(
    folders: Sequence[Path],
    metrics: Table[Metric],
    only: Mapping[str, Any],
    json_file: Path | None,
    items_file: Path | None,
) -> Shown:
    """Compare the systems of runs, and write the rows; return what makes the blocks, the figure and other formats."""
    from harness.analysis.comparison import compare as compare_runs
    from harness.cli.live import show_steps
    from harness.cli.output import write_rows
    from harness.reporting.comparison import comparison_blocks, comparison_rows, item_rows
    from harness.reporting.figures import forest_figure
    from harness.reporting.paper import paper_text
    from harness.storage.run_folder import Run

    runs = [Run(folder) for folder in folders]
    with show_steps():
        compared = compare_runs(runs, metrics, **only)
    if items_file is not None:
        write_rows(items_file, item_rows(compared.tasks))
    if json_file is not None:
        write_rows(json_file, comparison_rows(compared.tasks))
    return (
        partial(comparison_blocks, compared),
        partial(forest_figure, compared),
        partial(paper_text, compared, metrics),
    )


def _format(name: str | None, output: Path | None) -> str:
    """Return the format that was asked for, by name or by the suffix of the file.

    Raises:
        UnknownNameError: There is no such format.
        UsageError: The format is for files, and no file is given.
    """
    from harness.errors import UnknownNameError, UsageError

    suffixes = {f".{text}": text for text in (*FIGURES, "csv")} | {".tex": "latex", ".md": "markdown"}
    known = ["console", *suffixes.values()]
    if name is None:
        suffix = "" if output is None else output.suffix
        name = suffixes.get(suffix, suffix.removeprefix(".")) or "console"
    if name not in known:
        raise UnknownNameError("format", name, known)
    if name in FIGURES and output is None:
        raise UsageError(f"The format {name!r} is for files.", hint=f"Add --output comparison.{name}.")
    return name


def _check_history(format_name: str, *, strict: bool, items: Path | None) -> None:
    """Raise `UsageError` for options that a history does not have."""
    from harness.errors import UsageError

    given = ["--strict"] * strict + ["--items"] * (items is not None)
    given += [f"--format {format_name}"] * (format_name in {"latex", "csv"})
    if given:
        raise UsageError(
            f"--history shows series over time and has no {' '.join(given)}.",
            hint="It has --json, and the formats console, markdown, svg, pdf and png.",
        )


def _history(
    folders: Sequence[Path], metrics: Table[Metric], only: Mapping[str, Any], json_file: Path | None
) -> Shown:
    """Read the series of a model line, and write the rows; return what makes the blocks, the figure and Markdown."""
    from harness.analysis.history import history, history_runs
    from harness.cli.live import show_steps
    from harness.cli.output import write_rows
    from harness.reporting.history import history_blocks, history_figure
    from harness.reporting.markdown import render_markdown

    runs = history_runs(folders)
    with show_steps():
        found = history(runs, metrics, **only)
    if json_file is not None:
        write_rows(json_file, [row for series in found for row in series.rows()])
    sample = any(run.results.run.data == "sample" for run in runs)
    blocks = partial(history_blocks, found, sample=sample)
    return blocks, partial(history_figure, found, sample=sample), lambda _: render_markdown(blocks())


def _show(
    format_name: str,
    output: Path | None,
    blocks: Callable[[], list[Block]],
    figure: Callable[[], Any],
    text: Callable[[str], str],
) -> None:
    """Print a comparison, or write it into a file, from what makes its blocks, its figure and its other formats."""
    from harness.cli.display import print_report
    from harness.cli.output import echo, write_file
    from harness.reporting.console import print_blocks
    from harness.reporting.figures import save_figure

    if format_name in FIGURES and output is not None:
        save_figure(figure(), output, format_name)
    elif format_name == "console" and output is None:
        print_report(blocks())
    else:
        made = print_blocks(blocks(), width=WIDTH) if format_name == "console" else text(format_name)
        if output is None:
            echo(made, nl=False)
        else:
            write_file(output, made)
    if output is not None:
        echo(f"wrote {output}")
