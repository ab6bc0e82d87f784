"""Write a run in the formats of other tools: EEE, the Hub, MTEB, LaTeX."""

from __future__ import annotations

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
    from harness.cli import check_output_file, echo, reporting_broken_plugins, write_file, write_files
    from harness_export.catalog import TARGETS, require_real_data

    runs = [Run(folder) for folder in folders]
    registry = open_session().registry
    name = "systems-latex" if target == "latex" else target
    with reporting_broken_plugins(registry.plugins):
        chosen = registry.reports.get(name)
    if chosen.write is None:
        check_output_file(output, chosen.suffix)
    other_tool = next((each for each in TARGETS if each.name == name), None)
    if other_tool is not None:
        if len(runs) > 1 and not other_tool.many:
            raise UsageError(f"The format {target!r} is of one run; {len(runs)} were given.")
        if other_tool.publishes and not allow_sample:
            require_real_data(runs)
    if output is not None and chosen.write is not None:
        written = (
            write_files(other_tool.files(runs).items(), output) if other_tool else chosen.write(runs, output)
        )
        for path in written:
            echo(f"wrote {path}")
        return
    text = other_tool.text(runs) if other_tool else chosen.render(runs)
    if output is None:
        echo(text, nl=False)
    else:
        write_file(output, text)
        echo(f"wrote {output}")
