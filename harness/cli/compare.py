"""``harness compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli import option as o

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
    allow_code: o.AllowCode = False,
) -> None:
    """Compare the systems of runs on the items that all of them answered; needs no model and no data.

    Example: harness compare runs/e5-small runs/smollm2 --tasks xnli
    """
    from harness.analysis.comparison import compare as compare_runs
    from harness.cli.display import print_report
    from harness.cli.live import show_steps
    from harness.cli.output import check_output_file, reporting_broken_plugins, write_rows
    from harness.reporting.comparison import comparison_blocks, comparison_rows, item_rows
    from harness.running.session import open_session
    from harness.specs.selection import split_names
    from harness.storage.run_folder import Run

    runs = [Run(folder) for folder in folders]
    check_output_file(items_file)
    check_output_file(json_file)
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
    print_report(comparison_blocks(compared))
