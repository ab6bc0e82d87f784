"""``harness report``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.cli.output import echo
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.reporting.formats import ReportSection
    from harness.storage.run_folder import Run
    from harness.table import Table

Brief = Annotated[bool, typer.Option("--brief", help="Print only the summary, as eval does.")]
By = Annotated[
    Literal["family", "script"], typer.Option("--by", help="Group the languages by family or script.")
]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Also write the rows to this file.")]
OnlyNotes = Annotated[
    bool, typer.Option("--notes", help="Print only the notes and the reasons, all of them.")
]
OnlyMatrices = Annotated[bool, typer.Option("--matrices", help="Print only the matrices, large ones too.")]
OnlyProbing = Annotated[
    bool, typer.Option("--probing", help="Print only the probes of layers, with all their tables.")
]
OnlyConsistency = Annotated[
    bool,
    typer.Option("--consistency", help="Print only how alike the answers in different languages are."),
]
OnlyEquity = Annotated[
    bool, typer.Option("--equity", help="Print only what languages cost: fertility, premium, truncation.")
]
OnlyExplained = Annotated[
    bool,
    typer.Option("--explain", help="Print only what goes with scores: resources, syntax, tokens, script."),
]
WithPublished = Annotated[
    bool, typer.Option("--with-published", help="Show published scores of the run's suites.")
]
Item = Annotated[
    str | None,
    typer.Option("--item", metavar="ID", help="Print only this item: what was asked and answered."),
]
Tasks = Annotated[
    list[str] | None, typer.Option("--tasks", "-t", help="With --item: only these tasks; names or globs.")
]
Languages = Annotated[
    list[str] | None, typer.Option("--languages", "-l", help="With --item: only these codes.")
]
app = typer.Typer(add_completion=False)
SECTIONS = ("probing", "consistency", "explain")
"""The names of sections that are printed alone on request."""
PARTS = ("notes", "matrices", "equity", *SECTIONS)


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders, the main one first.")],
    format_name: Annotated[
        str, typer.Option("--format", "-f", help="console, markdown, html, latex, csv, json, svg, pdf, png.")
    ] = "console",
    output: Annotated[
        Path | None, typer.Option("--output", "--out", help="Write to this file, or folder.")
    ] = None,
    brief: Brief = False,
    by: By = "family",
    json_file: JsonFile = None,
    notes: OnlyNotes = False,
    matrices: OnlyMatrices = False,
    probing: OnlyProbing = False,
    equity: OnlyEquity = False,
    consistency: OnlyConsistency = False,
    explain: OnlyExplained = False,
    item: Item = None,
    tasks: Tasks = None,
    languages: Languages = None,
    with_published: WithPublished = False,
) -> None:
    """Print or write the report of a run: its tables by language, then its summary; its baselines are shown too."""
    from harness.cli.display import show_runs
    from harness.cli.live import show_steps
    from harness.cli.output import reporting_broken_plugins, write_file
    from harness.reporting.equity.rows import equity_format
    from harness.running.manifest import published_documents
    from harness.running.session import open_session
    from harness.storage.run_folder import Run, with_baselines

    if item is not None or tasks or languages:
        _print_item(folders, item, tasks, languages, json_file)
        return
    registry = (session := open_session()).registry
    with reporting_broken_plugins(registry.plugins):
        chosen = registry.reports.get(format_name)
    runs = [run for folder in folders for run in with_baselines(Run(folder))]
    if with_published:
        published = published_documents(session.catalog, runs[0].manifest.suites)
        runs[0].manifest = runs[0].manifest.changed(published=published)
    wanted = (notes, matrices, equity, probing, consistency, explain)
    part = next((name for name, own in zip(PARTS, wanted, strict=True) if own), "")
    if json_file is not None:
        _write_rows(json_file, runs, registry.report_sections, part)
    render = equity_format(format_name, chosen.render) if equity else chosen.render
    if output is not None and chosen.write is not None:
        for path in chosen.write(runs, output):
            echo(f"wrote {path}")
    elif output is not None:
        with show_steps():
            write_file(output, render(runs))
    elif format_name == "console":
        if part:
            _print(runs, registry.report_sections, part)
        else:
            show_runs(runs, details=not brief, by=by)
    else:
        echo(render(runs), nl=False)


def _write_rows(file: Path, runs: Sequence[Run], sections: Table[ReportSection], part: str) -> None:
    """Write the rows of a part of the report, by default those of its cells."""
    from harness.cli.output import write_rows
    from harness.reporting.equity.rows import equity_rows
    from harness.reporting.rows import cell_rows

    if part in SECTIONS:
        section = sections.get(part).read(runs)
        write_rows(file, [] if section is None else section.rows())
    else:
        write_rows(file, (equity_rows if part == "equity" else cell_rows)(runs))


def _print_item(
    folders: Sequence[Path],
    identifier: str | None,
    tasks: list[str] | None,
    languages: list[str] | None,
    json_file: Path | None,
) -> None:
    """Print one item of runs, in every task and language that has it; raises `UsageError` where none is named."""
    from harness.cli.live import show_steps
    from harness.cli.output import write_rows
    from harness.reporting.item_sheet import item_sheets
    from harness.specs.selection import split_names
    from harness.storage.run_folder import Run

    if identifier is None:
        raise UsageError("--tasks and --languages go with --item.", hint="A report shows all of its run.")
    runs = [Run(folder) for folder in folders]
    with show_steps():
        names, codes = split_names(tasks or []), split_names(languages or [])
        sheets = item_sheets(runs, identifier, tasks=names, languages=codes)
    for number, sheet in enumerate(sheets):
        if number:
            echo("")
        for line in sheet.lines():
            echo(line)
    if json_file is not None:
        write_rows(json_file, [sheet.row() for sheet in sheets])


def _print(runs: Sequence[Run], sections: Table[ReportSection], part: str) -> None:
    """Print one part of the report in all its tables."""
    from harness.cli.display import print_report
    from harness.reporting.equity.report import equity_report
    from harness.reporting.equity.table import equity_blocks
    from harness.reporting.model import Note
    from harness.reporting.summary import summarise
    from harness.reporting.summary_blocks import matrix_blocks, note_blocks, part_blocks

    if part == "equity":
        blocks = equity_blocks(equity_report(runs))
    else:
        summary = summarise(runs, sections=tuple(sections))
        if part == "notes":
            blocks = note_blocks(summary)
        elif part == "matrices":
            blocks = matrix_blocks(summary) or [Note("This run has no matrix.")]
        else:
            blocks = part_blocks(summary, sections.get(part))
    print_report(blocks)
