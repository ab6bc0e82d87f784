"""Options of commands that name files; without those of `RunConfig`, whose module takes time to import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

JsonRows = Annotated[Path | None, typer.Option("--json", help="Also write the rows to this file.")]
OutputFile = Annotated[Path | None, typer.Option("--output", "--out", help="Write to this file.")]
SpecFiles = Annotated[
    list[Path] | None, typer.Option("--tasks-from", help="File or folder with further specs.")
]
OnlyTasks = Annotated[
    list[str] | None, typer.Option("--tasks", "-t", help="Only these tasks; names or globs.")
]
OtherMetric = Annotated[
    str | None, typer.Option("--metric", help="Score with this one, not with the tasks' own.")
]
