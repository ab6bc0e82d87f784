"""Keep a public board in git: add scores of runs to a folder, check the folder."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Results that many people add to, in git.")
Repository = Annotated[Path, typer.Argument(metavar="REPO", help="A results repository.")]


@app.callback()
def results() -> None:
    """Results that many people add to: a folder in git with one JSON file per model and task."""


@app.command()
def add(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders, or folders that hold runs.")
    ],
    repository: Annotated[Path, typer.Option("--to", metavar="REPO", help="The results repository.")],
    name: Annotated[str | None, typer.Option(help="The model's name there.")] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Accept fewer items, and mark them.")] = False,
    unpinned: Annotated[
        bool, typer.Option("--unpinned", help="Accept downloads without a revision, and mark them.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put new scores in the place of others.")
    ] = False,
) -> None:
    """Add the scores of runs to a results repository; exit status 1 where something was rejected.

    Example: harness results add runs/e5-small --to ../our-results
    """
    # Imported here so that help stays fast.
    from harness import Run, UsageError
    from harness.cli import echo
    from harness.storage import run_folders
    from harness_board.repository_runs import Allowed, RejectedRunError, additions

    if not repository.is_dir():
        raise UsageError(
            f"The folder {str(repository)!r} does not exist.", hint="Clone the repository, or make it."
        )
    runs = [Run(folder) for folder in run_folders(folders)]
    if name is not None and len({run.manifest.model_name for run in runs}) > 1:
        raise UsageError("--name is of one model; the runs are of several.")
    allowed, rejected = Allowed(partial=partial, unpinned=unpinned), False
    for run in runs:
        for outcome in additions(run, repository, name=name, allowed=allowed, replace=replace):
            is_rejected = isinstance(outcome, RejectedRunError)
            echo(f"rejected: {outcome}" if is_rejected else str(outcome), err=is_rejected)
            rejected |= is_rejected
    raise typer.Exit(int(rejected))


@app.command()
def check(
    repository: Repository,
    fix: Annotated[
        bool, typer.Option("--fix", help="Rewrite files whose order of keys and lines alone is wrong.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the faults to this file.")
    ] = None,
) -> None:
    """Check all files of a results repository: exit status 1 where one has a fault.

    Example: harness results check .
    """
    from harness.cli import echo, write_rows
    from harness.reporting import counted
    from harness_board.repository_checking import check_repository

    report = check_repository(repository, fix=fix)
    if json_file is not None:
        write_rows(json_file, list(map(asdict, report.faults)))
    for fault in report.faults:
        echo(str(fault))
    for note in report.notes:
        echo(f"note: {note}")
    counts = (
        (report.files, "file"),
        (len(report.models), "model"),
        (len(report.tasks), "task"),
        (report.scores, "score"),
    )
    faults = counted(len(report.faults), "fault") if report.faults else "no fault"
    echo(f"{', '.join(counted(*count) for count in counts)}: {faults}.")
    raise typer.Exit(int(bool(report.faults)))


@app.command()
def schema(
    output: Annotated[Path | None, typer.Option("--output", "--out", help="Write it to this file.")] = None,
) -> None:
    """Print the JSON schema of the files, which editors know them by."""
    from harness.cli import echo, write_file
    from harness_board.repository_entry import schema as entry_schema

    text = json.dumps(entry_schema(), indent=1, sort_keys=True) + "\n"
    if output is None:
        echo(text, nl=False)
    else:
        write_file(output, text)
