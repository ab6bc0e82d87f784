"""Make a run of what lm-eval, inspect_ai, EuroEval, EEE or a table logged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from harness.cli import JsonFile, TasksFrom

app = typer.Typer(add_completion=False)


@app.command(name="import")
def import_logs(
    logs: Annotated[
        list[Path],
        typer.Argument(metavar="LOGS...", help="Logs of lm-eval, inspect_ai, EuroEval, EEE; tables."),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "--out", help="The run folder; of several models a folder of run folders."),
    ],
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Only this model of the logs, as they name it.")
    ] = None,
    language: Annotated[
        str | None, typer.Option("--language", metavar="CODE", help="The language of tasks that name none.")
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option("--as", metavar="NAME=TASK", help="A task of the logs is this one of ours."),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", "-d", help="Find items in the data of our tasks: folders, hub or sample."),
    ] = None,
    tasks_from: TasksFrom = None,
    parallel: Annotated[
        bool, typer.Option("--parallel", help="Ids mean the same item in all languages of a task.")
    ] = False,
    json_file: JsonFile = None,
) -> None:
    """Make a run folder of what another harness logged; with --data its items are found among ours.

    Example: harness import out/my-model --data ../data --output runs/theirs
    """
    # Imported here so that help stays fast.
    from harness import load, open_session
    from harness.cli import check_output_file, echo, reporting_broken_plugins, show_runs, write_rows
    from harness.data import DataFinder
    from harness.languages import known_languages
    from harness.planning import data_options
    from harness.storage import cache_folder
    from harness_import.imported_run import ImportOptions, write_runs
    from harness_import.item_match import ItemMatcher, task_names
    from harness_import.log_files import read_logs
    from harness_import.logged import UNDETERMINED

    check_output_file(json_file, ".json")
    given = UNDETERMINED if language is None else known_languages().get(language).code
    session = open_session(tuple(tasks_from or ()))
    chosen = data_options(data or ()) if data or os.environ.get("HARNESS_DATA") else None
    finder = None if chosen is None else DataFinder(chosen, session.registry, cache_folder() / "data")
    matcher = ItemMatcher(session.catalog, session.registry, finder, task_names(names or ()))
    mode = "logged" if chosen is None else chosen.mode
    options = ImportOptions(output=output, parallel=parallel, data=mode, model=model)
    with reporting_broken_plugins(session.registry.plugins):
        runs = write_runs(read_logs(logs, given), matcher, session.registry, options)
    if json_file is not None:
        write_rows(json_file, [row for run in runs for row in load(run.path).scores().to_dicts()])
    show_runs(runs, details=False)
    for run in runs:
        echo("\n".join([*run.results.notes, f"wrote {run.path}"]))
