"""``harness compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli import option as o

if TYPE_CHECKING:
    from harness.analysis.comparison import Comparison
    from harness.metrics.metric import Metric
    from harness.table import Table

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
    from harness.analysis.comparison import compare as compare_runs
    from harness.cli.live import show_steps
    from harness.cli.output import check_output_file, reporting_broken_plugins, write_rows
    from harness.reporting.comparison import comparison_rows, item_rows
    from harness.running.session import open_session
    from harness.specs.selection import split_names
    from harness.storage.run_folder import Run

    runs = [Run(folder) for folder in folders]
    check_output_file(items_file)
    check_output_file(json_file)
    format_name = _format(format_name, output)
    check_output_file(output)
    registry = open_session(allow_code=allow_code).registry
    with reporting_broken_plugins(registry.plugins), show_steps():
        compared = compare_runs(
            runs,
            registry.metrics,
            tasks=split_names(tasks or []),
            languages=split_names(languages or []),
            metric=metric,
            strict=strict,
        )
    if items_file is not None:
        write_rows(items_file, item_rows(compared.tasks))
    if json_file is not None:
        write_rows(json_file, comparison_rows(compared.tasks))
    _show(compared, registry.metrics, format_name, output)


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


def _show(compared: Comparison, metrics: Table[Metric], format_name: str, output: Path | None) -> None:
    """Print a comparison, or write it into a file."""
    from harness.cli.display import print_report
    from harness.cli.output import echo, write_file
    from harness.reporting.comparison import comparison_blocks
    from harness.reporting.console import print_blocks
    from harness.reporting.figures import forest_figure, save_figure
    from harness.reporting.paper import paper_text

    if format_name in FIGURES and output is not None:
        save_figure(forest_figure(compared), output, format_name)
    elif format_name == "console" and output is None:
        print_report(comparison_blocks(compared))
    else:
        text = (
            print_blocks(comparison_blocks(compared), width=WIDTH)
            if format_name == "console"
            else paper_text(compared, metrics, format_name)
        )
        if output is None:
            echo(text, nl=False)
        else:
            write_file(output, text)
    if output is not None:
        echo(f"wrote {output}")
