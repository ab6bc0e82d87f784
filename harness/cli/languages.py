"""``harness languages``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)


@app.command()
def languages(
    codes: Annotated[
        list[str] | None, typer.Argument(metavar="[CODE...]", help="Only these, in full.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the rows to this file.")
    ] = None,
) -> None:
    """List the languages by code: name, script, family, and the tasks that have them."""
    from harness.cli.display import broken_told, print_table, write_rows
    from harness.cli.tasks import open_catalog, task_rows
    from harness.languages import known_languages

    table = known_languages()
    chosen = [table.get(code) for code in codes] if codes else list(table)
    plugins, catalog = open_catalog()
    with broken_told(plugins, catalog):
        having = {row["task"]: row["languages"] for row in task_rows(catalog, catalog.names("task"))}
    rows = [
        {**asdict(language), "tasks": [name for name, known in having.items() if language.code in known]}
        for language in chosen
    ]
    if codes:
        for row in rows:
            print_table(
                ["field", str(row["code"])], [[key, _shown(value)] for key, value in row.items() if value]
            )
    else:
        keys = ("code", "name", "script", "family", "branch", "iso639_3", "tasks")
        print_table(list(keys), [[_shown(row[key]) for key in keys] for row in rows])
    if json_file is not None:
        write_rows(json_file, rows)


def _shown(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)
