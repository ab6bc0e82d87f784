"""``harness merge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli import option as o
from harness.cli.output import echo

app = typer.Typer(add_completion=False)


@app.command()
def merge_runs(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders of one model.")],
    output: Annotated[
        Path, typer.Option("--output", "--out", help="The new run folder.", rich_help_panel=o.OUTPUT)
    ],
    incomplete: Annotated[
        bool, typer.Option("--incomplete", help="Merge although shards are missing; they are skipped.")
    ] = False,
    json_file: o.JsonFile = None,
) -> int:
    """Make one run of the shards of a plan, or of runs over different tasks and languages.

    Example: harness merge runs/part-1 runs/part-2 --output runs/whole
    """
    from harness.analysis.merge import merge_runs
    from harness.cli.display import show_run
    from harness.running.session import open_session

    for line in merge_runs(runs, output, open_session().registry.metrics, incomplete=incomplete):
        echo(f"Note: {line}.", err=True)
    return show_run(output, json_file)
