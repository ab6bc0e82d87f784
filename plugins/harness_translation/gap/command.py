"""``harness gap`` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness import UsageError

if TYPE_CHECKING:
    from harness.reporting.model import Report

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
Common = Annotated[
    bool,
    typer.Option(
        "--common", help="Use only items that all variants have; without it, other items are an error."
    ),
]
Scores = Annotated[
    Path | None, typer.Option("--from-scores", help="A .tsv of scores instead of runs; units stay as given.")
]
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
    common: Common = False,
    from_scores: Scores = None,
    json_file: Rows = None,
    output: Page = None,
) -> None:
    """Report the gaps between human and machine translations of a test set, with paired intervals.

    Example: harness gap runs/xnli-variants --json gaps.json --output gaps.html
    """
    from harness import Run
    from harness.cli.display import print_report
    from harness.cli.output import check_output_file, echo, write_rows
    from harness.reporting.console import SAMPLE_WARNING
    from harness.reporting.model import Note, Report
    from harness.specs.selection import split_names
    from harness_translation.gap import paper, sections
    from harness_translation.gap.measure import GapOptions, compute_gaps
    from harness_translation.gap.score_file import read_scores
    from harness_translation.gap.system import gap_systems

    for path in (json_file, output):
        check_output_file(path)
    _check_arguments(folders or [], from_scores, k=k)
    if from_scores is not None:
        derived = paper.derived_rows(read_scores(from_scores))
        rows = [row.to_json() for row in derived]
        shown, legend = paper.derived_sections(derived), paper.LEGEND
    else:
        runs = [Run(folder) for folder in folders or []]
        systems = gap_systems(runs, tasks=split_names(tasks or []), languages=split_names(languages or []))
        found = compute_gaps(systems, metric, GapOptions(k=k, common=common))
        rows = sections.gap_rows(found)
        shown = [sections.system_section(gaps, k=k) for gaps in found]
        legend = sections.LEGEND
        if any(run.results.run.data == "sample" for run in runs):
            echo(SAMPLE_WARNING)
    if json_file is not None:
        write_rows(json_file, rows)
    if output is not None:
        _write_page(output, Report(title="Gaps between translations", subtitle=legend, sections=shown))
    for own in shown:
        print_report([Note(""), Note(own.title, "heading"), Note(""), *own.blocks])
    print_report([Note(""), Note(legend)])


def _write_page(path: Path, report: Report) -> None:
    """Write the page and, in the same folder, each of its figures: ``gaps.svg``, ``gaps-2.svg``.

    Raises `UsageError` if a file cannot be written.
    """
    from harness.cli.output import write_file
    from harness.reporting.model import Charts
    from harness.reporting.page import render_html, template

    write_file(path, render_html(report))
    blocks = [block for own in report.sections for block in own.blocks if isinstance(block, Charts)]
    for number, block in enumerate(blocks, start=1):
        name = path.stem if number == 1 else f"{path.stem}-{number}"
        drawing = template("drawing.svg.j2", "harness_translation", chart=block.charts[0])
        write_file(path.with_name(f"{name}.svg"), str(drawing))


def _check_arguments(folders: list[Path], from_scores: Path | None, *, k: float) -> None:
    """Raise `UsageError` for arguments that cannot be used together."""
    if bool(folders) == (from_scores is not None):
        got = "both run folders and --from-scores" if folders else "neither"
        raise UsageError(
            f"A gap needs run folders or a table of scores; got {got}.",
            hint="Give harness gap RUN..., or harness gap --from-scores FILE.tsv.",
        )
    if not 0 <= k < float("inf"):
        raise UsageError(f"--k must be a number of standard errors of at least 0, got {k!r}.")
