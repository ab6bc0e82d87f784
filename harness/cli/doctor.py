"""``harness doctor``."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.files import JsonRows
from harness.cli.output import echo

if TYPE_CHECKING:
    from harness.registry.doctor import SetupFinding

app = typer.Typer(add_completion=False)

TITLES = {
    "version": "Versions",
    "device": "Devices",
    "plugin": "Plugins",
    "cache": "Caches",
    "feature": "Features and their extras",
}
_MARKS = {"broken": "!", "outdated": "!", "missing": "-", "disabled": "-"}


@app.command()
def doctor(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TASK]...", help="Tasks and suites for --hub."),
    ] = None,
    hub: Annotated[
        bool,
        typer.Option(
            "--hub",
            help="Ask the Hub for the data of tasks, without downloading them; exit 1 where some differ.",
        ),
    ] = False,
    devices: Annotated[
        bool, typer.Option("--devices", help="Also import torch and list its devices.")
    ] = False,
    json_file: JsonRows = None,
) -> int:
    """Show versions, devices, plugins and caches, and what is missing for which feature; changes nothing."""
    from harness.cli.hub import show_sources
    from harness.cli.output import print_problem, write_rows
    from harness.registry.discovery import discover
    from harness.registry.doctor import examine

    if hub or tasks:
        return show_sources(tasks or [], json_file)
    plugins = discover()
    findings = examine(plugins, devices=devices)
    for area, title in TITLES.items():
        rows = [finding for finding in findings if finding.area == area]
        width = max((len(row.name) for row in rows), default=0)
        echo(title)
        for row in rows:
            for line in _lines(row, width):
                echo(line)
        echo("")
    broken = sum(finding.state in {"broken", "outdated"} for finding in findings)
    echo(f"{broken} broken or too old: see the lines that begin with !" if broken else "Nothing is broken.")
    for problem in plugins.undone:
        print_problem(f"Warning: {problem}", problem)
    write_rows(json_file, [asdict(finding) for finding in findings])
    return 0


def _lines(row: SetupFinding, width: int) -> Iterator[str]:
    """Yield a finding's lines: wrapped in a terminal, one line elsewhere; commands are never broken."""
    shows_state = row.state == "missing" or row.area == "feature"
    detail = f"{row.state:7}  {row.detail}" if shows_state else row.detail or row.state
    text = f"{_MARKS.get(row.state, ' ')} {row.name:{width}}  {detail}".rstrip()
    indent = " " * (width + 4)
    if _in_terminal():
        columns = max(shutil.get_terminal_size().columns, width + 30)
        yield textwrap.fill(
            text, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    else:
        yield text
    if row.advice:
        yield f"{indent}-> {row.advice}"


def _in_terminal() -> bool:
    return sys.stdout.isatty()
