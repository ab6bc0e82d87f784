"""``harness submission``: the public XTREME-R file formats on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.errors import UsageError
from harness_xtreme_r.submission.format import write_text

__all__ = ["app"]

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
    from harness_xtreme_r.submission.scoring import score_submission
    from harness_xtreme_r.submission.table import score_table

    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise UsageError(
            f"Cannot write {str(json_file)!r}: the folder {str(json_file.parent)!r} does not exist.",
            hint="Create it, or give --json another path.",
        )
    result = score_submission(predictions, gold)
    if json_file is not None:
        write_text(json_file, json.dumps(result.as_json(), indent=2) + "\n")
    console, errors = Console(), Console(stderr=True, highlight=False)
    console.print(score_table(result, console.width))
    for warning in result.warnings:
        errors.print(f"warning: {warning}", markup=False, soft_wrap=True)
