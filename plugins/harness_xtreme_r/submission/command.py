"""Score, export and import the public XTREME-R submission files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from harness.cli import check_output_file, echo, write_file

app = typer.Typer(no_args_is_help=True, help="Read, write and score files in the public XTREME-R layout.")


@app.callback()
def submission() -> None:
    """Read, write and score files in the public XTREME-R layout (TASK/test-LANG.EXT)."""


@app.command()
def score(
    predictions: Annotated[Path, typer.Option(help="Folder with a folder of predictions for each task.")],
    gold: Annotated[Path, typer.Option(help="Folder with the gold files in the same layout.")],
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the scores, in points, to this file.")
    ] = None,
) -> None:
    """Score a folder of predictions as the benchmark's own scorer does."""
    # Imported here so that help loads no numpy.
    from harness.cli import PrintableConsole
    from harness_xtreme_r.submission.scoring import score_submission, score_table

    check_output_file(json_file, ".json")
    result = score_submission(predictions, gold)
    if json_file is not None:
        write_file(json_file, json.dumps(result.as_json(), indent=2) + "\n")
    console = PrintableConsole(emoji=False)
    console.print(score_table(result, console.width))
    for warning in result.warnings:
        _warn(warning)


@app.command()
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    target: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the TASK/test-LANG.EXT files.")],
    protocol: Annotated[
        str | None, typer.Option(help="Only cells of this protocol, where a task was run under several.")
    ] = None,
) -> None:
    """Write the predictions of a run as a submission."""
    from harness_xtreme_r.submission.run import export_run

    written, omitted = export_run(run, target, protocol=protocol)
    echo(f"Wrote {len(written)} files below {target}.")
    for reason in omitted:
        _warn(f"skipped {reason}")


@app.command("import")
def import_(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder of predictions in the public layout.")
    ],
    output: Annotated[Path, typer.Option("--output", "--out", help="The run folder to make.")],
    data: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", help="Where the test data are: hub, sample, or folders."),
    ] = None,
) -> int:
    """Make a run of a submission, to score, report and compare it like any other."""
    from harness.cli import show_run
    from harness_xtreme_r.submission.run import import_submission

    _, omitted = import_submission(folder, data or [], output)
    for reason in omitted:
        _warn(f"skipped {reason}")
    return show_run(output)


def _warn(message: str) -> None:
    echo(f"warning: {message}", err=True)
