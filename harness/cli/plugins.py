"""``harness plugins``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)


@app.command()
def plugins(
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the rows to this file.")
    ] = None,
) -> int:
    """List the installed plugins, and what is wrong with broken ones; exit status 1 where one is broken."""
    from harness.cli.display import print_table, write_rows
    from harness.discovery import discover

    found = discover()
    rows = [
        {
            "name": plugin.name,
            "package": plugin.distribution,
            "version": plugin.version,
            "module": plugin.module,
            "state": "ok" if plugin.error is None else "broken",
            "error": plugin.error,
        }
        for plugin in [*found.loaded, *found.broken]
    ]
    rows += [
        {"name": name, "package": "", "version": "", "module": "", "state": "disabled", "error": None}
        for name in found.disabled
    ]
    print_table(
        ["plugin", "package", "version", "state"],
        [[str(row[key] or "") for key in ("name", "package", "version", "state")] for row in rows],
    )
    for plugin in found.broken:
        typer.echo(f"{plugin.name} ({plugin.module}): {plugin.error}", err=True)
    if json_file is not None:
        write_rows(json_file, rows)
    return int(bool(found.broken))
