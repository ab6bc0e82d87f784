"""Show whether a benchmark's translations, not the model, cost the score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness import UsageError

if TYPE_CHECKING:
    from harness.reporting import Block, CurveChart, Report, Section

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
    typer.Option(
        "--output", "--out", help="An HTML page, with its figures as .svg; with --format latex, a .tex file."
    ),
]
Format = Annotated[
    Literal["text", "latex"], typer.Option("--format", help="text, or latex: a table as in the papers.")
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
    form: Format = "text",
    output: Page = None,
) -> None:
    """Report the gaps between human and machine translations of a test set, with paired intervals.

    Example: harness gap runs/xnli-variants --json gaps.json --output gaps.html
    """
    from harness import Run
    from harness.cli import check_output_file, echo, print_report, write_rows
    from harness.reporting import SAMPLE_WARNING, Note, Report
    from harness.specs import language_codes, split_names
    from harness_translation.gap import paper, sections
    from harness_translation.gap.measure import GapOptions, compute_gaps
    from harness_translation.gap.paper import read_scores
    from harness_translation.gap.system import gap_systems

    check_output_file(json_file, ".json")
    check_output_file(output, ".html", ".tex")
    _check_arguments(folders or [], from_scores, k=k)
    if from_scores is not None:
        derived = paper.derived_rows(read_scores(from_scores))
        rows = [row.to_json() for row in derived]
        report_sections, legend = paper.derived_sections(derived), paper.LEGEND
        tables, curves = paper.derived_tables(derived), paper.derived_curves(derived)
    else:
        runs = [Run(folder) for folder in folders or []]
        systems = gap_systems(runs, tasks=split_names(tasks or []), languages=language_codes(languages))
        all_gaps = compute_gaps(systems, metric, GapOptions(k=k, common=common))
        rows = sections.gap_rows(all_gaps)
        report_sections = [sections.system_section(gaps, k=k) for gaps in all_gaps]
        legend, tables = sections.LEGEND, [sections.system_table(gaps) for gaps in all_gaps]
        curves = [sections.system_curve(gaps, name) for gaps in all_gaps for name in gaps.system.translators]
        if any(run.results.run.data == "sample" for run in runs):
            echo(SAMPLE_WARNING)
    if json_file is not None:
        write_rows(json_file, rows)
    if form == "latex":
        _write_latex(output, [*tables, Note(legend)])
        return
    if output is not None:
        page = [*report_sections, *_figure([curve for curve in curves if curve is not None])]
        _write_page(output, Report(title="Gaps between translations", subtitle=legend, sections=page))
    for section in report_sections:
        print_report([Note(""), Note(section.title, "heading"), Note(""), *section.blocks])
    print_report([Note(""), Note(legend)])


def _figure(curves: Sequence[CurveChart]) -> list[Section]:
    from harness.reporting import Charts, Section

    title = "Human and machine text by language"
    blocks: list[Block] = [Charts(charts=(curve,)) for curve in curves]
    return [Section(name="curves", title=title, blocks=blocks)] if curves else []


def _write_latex(path: Path | None, blocks: Sequence[Block]) -> None:
    from harness.cli import echo, write_file
    from harness.reporting import render_latex

    text = render_latex(blocks)
    if path is None:
        echo(text, nl=False)
    else:
        write_file(path, text)


def _write_page(path: Path, report: Report) -> None:
    """Write the page and, in the same folder, each of its figures: ``gaps.svg``, ``gaps-2.svg``, ``gaps-curves.svg``.

    Raises `UsageError` if a file cannot be written.
    """
    from harness.cli import write_file
    from harness.reporting import BarChart, Charts, CurveChart, Figure, render_html

    write_file(path, render_html(report))
    charts = [
        block.charts[0]
        for section in report.sections
        for block in section.blocks
        if isinstance(block, Charts)
    ]
    for kind, stem in ((BarChart, path.stem), (CurveChart, f"{path.stem}-curves")):
        for number, chart in enumerate((chart for chart in charts if isinstance(chart, kind)), start=1):
            name = stem if number == 1 else f"{stem}-{number}"
            Figure(title=chart.title, rows=[[chart]]).save(path.with_name(f"{name}.svg"))


def _check_arguments(folders: list[Path], from_scores: Path | None, *, k: float) -> None:
    """Raise `UsageError` for arguments that cannot be used together."""
    if bool(folders) == (from_scores is not None):
        arguments = "both run folders and --from-scores" if folders else "neither"
        raise UsageError(
            f"A gap needs run folders or a table of scores; got {arguments}.",
            hint="Give harness gap RUN..., or harness gap --from-scores FILE.tsv.",
        )
    if not 0 <= k < float("inf"):
        raise UsageError(f"--k must be a number of standard errors of at least 0, got {k!r}.")
