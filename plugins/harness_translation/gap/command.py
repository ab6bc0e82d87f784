"""``harness gap`` on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness import UnknownNameError, UsageError

if TYPE_CHECKING:
    from harness_translation.gap.system import GapSystem

__all__ = ["app"]

app = typer.Typer(add_completion=False)

Folders = Annotated[list[Path] | None, typer.Argument(metavar="[RUN]...", help="Run folders.")]
Tasks = Annotated[list[str] | None, typer.Option("--tasks", "-t", help="Only these tasks; names or globs.")]
Languages = Annotated[
    list[str] | None, typer.Option("--languages", "-l", help="Only these codes and the source language.")
]
MetricName = Annotated[
    str | None,
    typer.Option("--metric", help="A metric with item scores; default: the metrics of the task."),
]
Errors = Annotated[
    float, typer.Option("--k", help="Flag gaps of more than this many standard errors for every translator.")
]
Order = Annotated[str, typer.Option("--order", help="Order languages by cc100 or wikipedia.")]
Common = Annotated[
    bool,
    typer.Option(
        "--common", help="Use only items that all variants have; without it, other items are an error."
    ),
]
Scores = Annotated[
    Path | None, typer.Option("--from-scores", help="A .tsv of scores instead of runs; units stay as given.")
]
Suspects = Annotated[
    bool, typer.Option("--suspects", help="Rank items that models get wrong only in the human translation.")
]
Top = Annotated[int, typer.Option("--top", min=1, help="With --suspects: items per task and language.")]
Rows = Annotated[Path | None, typer.Option("--json", help="Also write the rows to this file.")]
Page = Annotated[
    Path | None,
    typer.Option("--output", "--out", help="An HTML page; its figure is also written as .svg."),
]


@app.command()
def gap(
    folders: Folders = None,
    tasks: Tasks = None,
    languages: Languages = None,
    metric: MetricName = None,
    k: Errors = 2.0,
    order: Order = "cc100",
    common: Common = False,
    from_scores: Scores = None,
    suspects: Suspects = False,
    top: Top = 50,
    json_file: Rows = None,
    output: Page = None,
) -> None:
    """Report the gaps between human and machine translations of a test set, with paired intervals.

    Example: harness gap runs/xnli-variants --json gaps.json --output gaps.html
    """
    from harness.cli.output import check_output_file

    for path in (json_file, output):
        check_output_file(path)
    _check_arguments(folders or [], from_scores, suspects=suspects, k=k, order=order)
    if from_scores is not None:
        _from_scores(from_scores, order, json_file, output)
        return
    from harness import Run
    from harness.specs.selection import split_names
    from harness_translation.gap.system import gap_systems

    systems = gap_systems(
        [Run(folder) for folder in folders or []],
        tasks=split_names(tasks or []),
        languages=split_names(languages or []),
    )
    if suspects:
        _suspects(systems, metric, top, common, json_file, output)
    else:
        _gaps(systems, metric, k, order, common, json_file, output)


def _check_arguments(
    folders: list[Path], from_scores: Path | None, *, suspects: bool, k: float, order: str
) -> None:
    """Raise `UsageError` for arguments that cannot be used together."""
    from harness_translation.gap.pretraining import ORDERS

    if bool(folders) == (from_scores is not None):
        got = "both run folders and --from-scores" if folders else "neither"
        raise UsageError(
            f"A gap needs run folders or a table of scores; got {got}.",
            hint="Give harness gap RUN..., or harness gap --from-scores FILE.tsv.",
        )
    if suspects and from_scores is not None:
        raise UsageError("--suspects needs the items of runs; a table of scores has none.")
    if order not in ORDERS:
        raise UnknownNameError("order of languages", order, ORDERS)
    if not 0 <= k < float("inf"):
        raise UsageError(f"--k must be a number of standard errors of at least 0, got {k!r}.")


def _gaps(
    systems: Sequence[GapSystem],
    metric: str | None,
    k: float,
    order: str,
    common: bool,
    json_file: Path | None,
    output: Path | None,
) -> None:
    from harness.cli.display import stdout
    from harness.cli.output import write_rows
    from harness_translation.gap.console import render_gaps
    from harness_translation.gap.measure import GapOptions, compute_gaps
    from harness_translation.gap.page import write_page
    from harness_translation.gap.row import gap_rows

    found = compute_gaps(systems, metric, GapOptions(k=k, order=order, common=common))
    if json_file is not None:
        write_rows(json_file, gap_rows(found, order))
    if output is not None:
        write_page(output, found, k=k, order=order)
    stdout().print(render_gaps(found, k=k, order=order))


def _suspects(
    systems: Sequence[GapSystem],
    metric: str | None,
    top: int,
    common: bool,
    json_file: Path | None,
    output: Path | None,
) -> None:
    from harness.cli.display import stdout
    from harness.cli.output import write_file, write_rows
    from harness_translation.gap.suspect import find_suspects
    from harness_translation.gap.suspect_report import render_suspects, suspect_page, suspect_rows

    found = find_suspects(systems, metric, top=top, common=common)
    if json_file is not None:
        write_rows(json_file, suspect_rows(found))
    if output is not None:
        write_file(output, suspect_page(found))
    stdout().print(render_suspects(found))


def _from_scores(path: Path, order: str, json_file: Path | None, output: Path | None) -> None:
    from harness.cli.display import stdout
    from harness.cli.output import write_rows
    from harness_translation.gap.paper import derived_rows
    from harness_translation.gap.paper_report import render_derived, write_derived
    from harness_translation.gap.score_file import read_scores

    rows = derived_rows(read_scores(path), order)
    if json_file is not None:
        write_rows(json_file, [row.to_json() for row in rows])
    if output is not None:
        write_derived(output, rows, order=order)
    stdout().print(render_derived(rows, order=order))
