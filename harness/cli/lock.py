"""``harness lock``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import option as o
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.planning.lock_file import Lock

app = typer.Typer(add_completion=False)


@app.command()
def lock(
    named: Annotated[
        list[str], typer.Argument(metavar="RUN|TASKS", help="A run folder, or tasks and suites as for eval.")
    ],
    languages: o.Languages = None,
    tasks_from: o.TasksFrom = None,
    data: o.Data = None,
    recipe: o.Recipe = None,
    train_languages: o.TrainLanguages = None,
    variants: o.Variants = None,
    output: Annotated[
        Path, typer.Option("--output", "--out", help="The lock file.", rich_help_panel=o.OUTPUT)
    ] = Path("harness.lock.json"),
    json_file: o.JsonFile = None,
) -> None:
    """Write the revisions and digests of all data and specs; eval --locked FILE rejects anything else.

    Example: harness lock xnli --data hub --output xnli.lock.json
    """
    from harness.cli.output import check_output_file, write_file, write_rows
    from harness.planning.lock_file import lock_run
    from harness.storage.run_folder import Run

    given = {
        "--languages": languages,
        "--tasks-from": tasks_from,
        "--data": data,
        "--recipe": recipe,
        "--train-languages": train_languages,
        "--variants": variants,
    }
    check_output_file(output)
    check_output_file(json_file)
    missing: list[str] = []
    if _names_a_run(named):
        chosen = [name for name, value in given.items() if value]
        if chosen:
            raise UsageError(
                f"{chosen[0]} chooses among tasks; the run {named[0]!r} is locked as it was made."
            )
        found = lock_run(Run(named[0]))
    else:
        found, missing = _lock_tasks(named, given)
    write_file(output, found.to_text())
    _show(found, missing, output)
    if json_file is not None:
        write_rows(json_file, _rows(found))


def _names_a_run(named: list[str]) -> bool:
    paths = [Path(name) for name in named]
    runs = [path for path in paths if (path / "manifest.json").is_file() or len(path.parts) > 1]
    if runs and len(named) > 1:
        raise UsageError(
            f"The run {str(runs[0])!r} was named together with {len(named) - 1} more; one run is locked at a time."
        )
    return bool(runs)


def _lock_tasks(named: list[str], given: dict[str, Any]) -> tuple[Lock, list[str]]:
    from harness.cli.output import reporting_broken_plugins
    from harness.data.sources import DataFinder
    from harness.planning.lock_file import Lock
    from harness.planning.resolution import TasksResolver
    from harness.running.session import data_options, open_session
    from harness.specs.selection import select, split_names
    from harness.storage.files import cache_folder

    session = open_session(given["--tasks-from"] or ())
    with reporting_broken_plugins(session.registry.plugins, session.catalog):
        finder = DataFinder(data_options(given["--data"] or []), session.registry, cache_folder() / "data")
        resolver = TasksResolver(
            session.catalog,
            finder,
            train_languages=split_names(given["--train-languages"] or ()),
            variants=split_names(given["--variants"] or ()),
            recipe=given["--recipe"],
        )
        codes = split_names(given["--languages"] or ()) or None
        resolution = resolver.resolve(select(session.catalog, named, codes))
    return Lock.of(resolution), resolver.missing


def _show(found: Lock, missing: list[str], output: Path) -> None:
    from rich.markup import escape

    from harness.cli.display import stdout
    from harness.cli.table import print_table

    rows = []
    for origin in sorted({entry.origin for entry in found.data}):
        entries = [entry for entry in found.data if entry.origin == origin]
        pinned = sum(entry.pinned for entry in entries)
        files = sum(len(entry.files) for entry in entries)
        rows.append([origin, *map(str, (len(entries), files, pinned, len(entries) - pinned))])
    print_table(("data", "splits", "files", "pinned", "unpinned"), rows)
    model = "no model" if found.model is None else f"the model {found.model.ref}"
    lines = [f"{output}: {len(found.data)} splits, {len(found.specs)} documents, {model}"]
    lines += [f"unpinned, no revision is known: {entry.title}" for entry in found.data if not entry.pinned]
    lines += [f"not found and not locked: {title}" for title in missing]
    for line in lines:
        stdout().print(escape(line), soft_wrap=True)


def _rows(found: Lock) -> list[dict[str, Any]]:
    return [
        {
            "owner": entry.owner,
            "language": entry.language,
            "split": entry.split,
            "view": entry.view,
            "origin": entry.origin,
            "revision": None if entry.hub is None else entry.hub.revision,
            "pinned": entry.pinned,
            "files": len(entry.files),
            "digest": entry.digest,
        }
        for entry in found.data
    ]
