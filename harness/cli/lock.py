"""``harness lock``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli import option as o
from harness.cli.output import (
    check_output_file,
    echo,
    reporting_broken_plugins,
    write_file,
    write_rows,
)
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.planning.lock_file import Lock

app = typer.Typer(add_completion=False)


@app.command()
@o.takes_settings("languages", "tasks_from", "data", "recipe", "train_languages", "variants")
def lock(
    named: Annotated[
        list[str], typer.Argument(metavar="RUN|TASKS", help="A run folder, or tasks and suites as for eval.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "--out", help="The lock file.", rich_help_panel=o.OUTPUT)
    ] = Path("harness.lock.json"),
    json_file: o.JsonFile = None,
    **given: Any,
) -> None:
    """Write the revisions and digests of all data and specs; eval --locked FILE rejects anything else.

    Example: harness lock xnli --data hub --output xnli.lock.json
    """
    from harness.planning.lock_file import lock_run
    from harness.planning.run_config import settings
    from harness.storage.run_folder import Run

    values = o.read_options(given)
    check_output_file(output, ".json", ".lock")
    missing: list[str] = []
    if _names_a_run(named):
        for name in values:
            raise UsageError(
                f"{settings()[name].long} chooses among tasks; the run {named[0]!r} is locked as it was made."
            )
        new_lock = lock_run(Run(named[0]))
    else:
        new_lock, missing = _lock_tasks(named, values)
    write_file(output, new_lock.to_text())
    _show(new_lock, missing, output)
    write_rows(json_file, _rows(new_lock))


def _names_a_run(named: list[str]) -> bool:
    paths = [Path(name) for name in named]
    runs = [path for path in paths if (path / "manifest.json").is_file() or len(path.parts) > 1]
    if runs and len(named) > 1:
        raise UsageError(
            f"The run {str(runs[0])!r} was named together with {len(named) - 1} more; one run is locked at a time."
        )
    return bool(runs)


def _lock_tasks(named: list[str], values: dict[str, Any]) -> tuple[Lock, list[str]]:
    from harness.cli.fetch import print_downloads
    from harness.data.sources import DataFinder
    from harness.planning.lock_file import Lock
    from harness.planning.resolution import resolve_tasks
    from harness.planning.run_config import RunConfig, data_options
    from harness.running.session import open_session
    from harness.specs.selection import select
    from harness.storage.files import cache_folder

    session = open_session(values.get("tasks_from", ()))
    with reporting_broken_plugins(session.registry.plugins, session.catalog):
        data = values.get("data") or data_options([])
        learnt = values.get("train_languages", ())
        run_config = RunConfig(
            tasks=tuple(named), model="", languages=values.get("languages"), data=data, train_languages=learnt
        )
        print_downloads(run_config, session)
        finder = DataFinder(data, session.registry, cache_folder() / "data")
        resolution, missing = resolve_tasks(
            session.catalog,
            finder,
            select(session.catalog, named, values.get("languages")),
            train_languages=learnt,
            variants=values.get("variants", ()),
            recipe=values.get("recipe"),
        )
    return Lock.of(resolution), missing


def _show(found: Lock, missing: list[str], output: Path) -> None:

    from harness.cli.display import print_table

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
    first = {entry.web.url: entry.web.sha256 for entry in found.data if entry.web and entry.web.first_use}
    lines += [f"checksum first seen here, now locked: {url} sha256 {digest}" for url, digest in first.items()]
    lines += [f"not found and not locked: {title}" for title in missing]
    for line in lines:
        echo(line)


def _rows(found: Lock) -> list[dict[str, Any]]:
    return [
        {
            "owner": entry.owner,
            "language": entry.language,
            "split": entry.split,
            "view": entry.view,
            "origin": entry.origin,
            "revision": entry.hub.revision if entry.hub else entry.web and f"sha256:{entry.web.sha256}",
            "pinned": entry.pinned,
            "files": len(entry.files),
            "digest": entry.digest,
        }
        for entry in found.data
    ]
