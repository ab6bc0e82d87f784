"""``harness doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)

TITLES = {
    "version": "Versions",
    "device": "Devices",
    "plugin": "Plugins",
    "cache": "Caches",
    "feature": "Features and their extras",
}


@app.command()
def doctor(
    devices: Annotated[bool, typer.Option("--devices", help="Also import torch and ask it.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the rows to this file.")
    ] = None,
) -> None:
    """Show versions, devices, plugins and caches, and what is missing for which feature; changes nothing."""
    from harness.cli.display import write_rows
    from harness.discovery import discover
    from harness.doctor import examine

    found = examine(discover(), devices=devices)
    for area, title in TITLES.items():
        rows = [finding for finding in found if finding.area == area]
        width = max((len(row.name) for row in rows), default=0)
        typer.echo(title)
        for row in rows:
            mark = " " if row.state == "ok" else "!" if row.state == "broken" else "-"
            detail = row.detail if row.state in {"ok", "broken"} else f"{row.state}  {row.detail}"
            typer.echo(f"{mark} {row.name:{width}}  {detail}".rstrip())
            if row.advice:
                typer.echo(f"  {'':{width}}  -> {row.advice}")
        typer.echo("")
    broken = sum(finding.state == "broken" for finding in found)
    typer.echo(f"{broken} broken" if broken else "Nothing is broken.")
    if json_file is not None:
        write_rows(json_file, [finding.to_json() for finding in found])
