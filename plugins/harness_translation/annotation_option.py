"""The options of ``harness annotate export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__: list[str] = []

Output = Annotated[Path, typer.Option("--output", "--out", help="A new folder for sheets and key.")]
Tasks = Annotated[list[str] | None, typer.Option("--tasks", "-t", help="Tasks, as for eval.")]
Languages = Annotated[list[str] | None, typer.Option("--languages", "-l", help="Their codes.")]
Variants = Annotated[
    list[str] | None,
    typer.Option("--variant", "--variants", help="Versions of the text; 'original' is the task's own."),
]
Runs = Annotated[
    list[Path] | None, typer.Option("--run", help="Take the items from this run, not from data files.")
]
Data = Annotated[list[str] | None, typer.Option("--data", "-d", help="hub, sample, or folders.")]
TasksFrom = Annotated[
    list[Path] | None, typer.Option("--tasks-from", help="File or folder with further specs.")
]
Size = Annotated[int, typer.Option("--size", help="Rows of a sheet.")]
Seed = Annotated[int, typer.Option("--seed", help="Another seed, other items.")]
Annotators = Annotated[int, typer.Option("--annotators", min=1, help="People who label each sheet.")]
Stratify = Annotated[
    str | None, typer.Option("--stratify", help="label, or an attribute of the items, such as genre.")
]
Strata = Annotated[
    Path | None, typer.Option("--strata", help="With --stratify: a file with the stratum of every item.")
]
AllocationName = Annotated[
    Literal["proportional", "equal"], typer.Option("--allocation", help="Rows of each stratum.")
]
Suspects = Annotated[
    Path | None, typer.Option("--suspects", help="Ranked items, as 'harness gap --suspects' writes them.")
]
ControlShare = Annotated[
    float, typer.Option("--control-share", help="Share of a sheet drawn at random beside the suspects.")
]
Instructions = Annotated[
    Path | None, typer.Option("--instructions", help="What annotators are told, in place of ours.")
]
Page = Annotated[
    bool, typer.Option("--page", help="Write pages to label in, beside the CSV files; they need no network.")
]
