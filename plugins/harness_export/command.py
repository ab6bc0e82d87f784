"""``harness export`` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

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
    from harness.cli.output import echo, reporting_broken_plugins, write_file
    from harness_export.catalog import TARGETS, require_real_data, write_files

    runs = [Run(folder) for folder in folders]
    registry = open_session().registry
    name = "systems-latex" if target == "latex" else target
    with reporting_broken_plugins(registry.plugins):
        chosen = registry.reports.get(name)
    own = next((each for each in TARGETS if each.name == name), None)
    if len(runs) > 1 and own is not None and not own.many:
        raise UsageError(f"The format {target!r} is of one run; {len(runs)} were given.")
    if own is not None and own.publishes and not allow_sample:
        require_real_data(runs)
    if output is not None and chosen.write is not None:
        written = chosen.write(runs, output) if own is None else write_files(own.files(runs), output)
        for path in written:
            echo(f"wrote {path}")
        return
    text = chosen.render(runs) if own is None else own.text(runs)
    if output is None:
        echo(text, nl=False)
    else:
        write_file(output, text)
        echo(f"wrote {output}")
