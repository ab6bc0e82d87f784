"""Write a run in the formats of other tools: EEE, the Hub, MTEB, LaTeX."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)


@app.command()
def export(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders; csv and latex take several.")
    ],
    target: Annotated[
        str,
        typer.Option("--to", help="eee, model-index, eval-results, mteb, csv, latex, or a report format."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "--out", help="The file; a folder for eval-results and mteb."),
    ] = None,
    allow_sample: Annotated[
        bool, typer.Option("--allow-sample", help="Also write sample data in formats for publishing.")
    ] = False,
) -> None:
    """Write a run in the format of another tool, with what makes each number: metric, items, interval, protocol.

    Example: harness export runs/e5-small --to eee --output e5-small.json
    """
    from harness import Run, UsageError, open_session
    from harness.cli import check_output_file, echo, reporting_broken_plugins, write_file
    from harness_export.catalog import TARGETS

    runs = [Run(folder) for folder in folders]
    registry = open_session().registry
    name = "systems-latex" if target == "latex" else target
    with reporting_broken_plugins(registry.plugins):
        chosen = registry.reports.get(name)
    if chosen.write is None:
        check_output_file(output, chosen.suffix)
    render, write = chosen.render, chosen.write
    target_format = next((each for each in TARGETS if each.name == name), None)
    if target_format is not None:
        if len(runs) > 1 and not target_format.many:
            raise UsageError(f"The format {target!r} is of one run; {len(runs)} were given.")
        render = partial(target_format.text, allow_sample=allow_sample)
        write = chosen.write and partial(target_format.write, allow_sample=allow_sample)
    if output is None:
        echo(render(runs), nl=False)
        return
    if write is None:
        write_file(output, render(runs))
    for path in [output] if write is None else write(runs, output):
        echo(f"wrote {path}")
