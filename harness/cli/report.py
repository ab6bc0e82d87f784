"""``harness report``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness.cli.files import JsonRows
from harness.cli.output import (
    check_output_file,
    choose_format,
    echo,
    reporting_broken_plugins,
    write_file,
    write_rows,
)
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.registry.declarations import ReportFormat, ReportSection
    from harness.storage.run_folder import Run
    from harness.table import NamedTable

Brief = Annotated[bool, typer.Option("--brief", help="Print only the summary, as eval does.")]
By = Annotated[
    Literal["family", "script"], typer.Option("--by", help="Group the languages by family or script.")
]
OnlyNotes = Annotated[
    bool, typer.Option("--notes", help="Print only the notes and the reasons, all of them.")
]
OnlyMatrices = Annotated[
    bool, typer.Option("--matrices", help="Only the matrices, large ones too; with --format too.")
]
OnlyUnreadable = Annotated[
    bool, typer.Option("--unreadable", help="Print only the answers that could not be read, all of them.")
]
OnlyProbing = Annotated[
    bool, typer.Option("--probing", help="Print only the probes of layers, with all their tables.")
]
Against = Annotated[
    list[Path] | None,
    typer.Option(
        "--against", metavar="RUN", help="With --probing: compare with these runs as a second group."
    ),
]
OnlyConsistency = Annotated[
    bool,
    typer.Option("--consistency", help="Print only how alike the answers in different languages are."),
]
OnlyKnowledge = Annotated[
    bool,
    typer.Option("--knowledge", help="Print only in which languages the same items are answered."),
]
OnlyEquity = Annotated[
    bool, typer.Option("--equity", help="Print only what languages cost: fertility, premium, truncation.")
]
Watts = Annotated[
    float | None,
    typer.Option(
        "--watts", min=0, help="With --equity: the power drawn, for the energy of a correct answer."
    ),
]
OnlyExplained = Annotated[
    bool,
    typer.Option("--explain", help="Print only what goes with scores: resources, syntax, tokens, script."),
]
SectionName = Annotated[
    str | None, typer.Option("--section", metavar="NAME", help="Print only this section of a plugin.")
]
WithPublished = Annotated[
    bool, typer.Option("--with-published", help="Show published scores of the run's suites.")
]
Title = Annotated[str | None, typer.Option("--title", help="Title of the report; default the model's name.")]
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
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "--out", help="Write to this file, whose suffix is the format; figures to a folder."
    ),
]
Folders = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders, the main one first.")]
FormatName = Annotated[
    str | None,
    typer.Option("--format", "-f", help="console, markdown, html, latex, csv, json, svg, pdf, png."),
]
app = typer.Typer(add_completion=False)
CORE = ("notes", "matrices", "unreadable", "equity")
"""The parts of a report that are no sections of plugins."""
PARTS = (*CORE, "probing", "consistency", "knowledge", "explain")


@app.command()
def report(
    folders: Folders,
    format_name: FormatName = None,
    output: Output = None,
    brief: Brief = False,
    by: By = "family",
    json_file: JsonRows = None,
    notes: OnlyNotes = False,
    matrices: OnlyMatrices = False,
    unreadable: OnlyUnreadable = False,
    probing: OnlyProbing = False,
    against: Against = None,
    equity: OnlyEquity = False,
    watts: Watts = None,
    consistency: OnlyConsistency = False,
    knowledge: OnlyKnowledge = False,
    explain: OnlyExplained = False,
    section: SectionName = None,
    item: Item = None,
    tasks: Tasks = None,
    languages: Languages = None,
    with_published: WithPublished = False,
    title: Title = None,
) -> None:
    """Print or write the report of a run: its tables by language, then its summary; its baselines are shown too."""
    from harness.cli.display import show_runs
    from harness.running.manifest import published_documents
    from harness.running.session import open_session
    from harness.storage.run_folder import Run, with_baselines

    if watts is not None and not equity:
        raise UsageError("--watts goes with --equity.")
    if item is not None or tasks or languages:
        _print_item(folders, item, tasks, languages, json_file)
        return
    registry = (session := open_session()).registry
    with reporting_broken_plugins(registry.plugins):
        chosen = _format(format_name, output, registry.reports)
    runs = [run for folder in folders for run in with_baselines(Run(folder))]
    first = runs[0].manifest
    if with_published:
        first = first.changed(published=published_documents(session.catalog, first.suites, first.tasks))
    runs[0].manifest = first if title is None else first.changed(title=title)
    flags = (notes, matrices, unreadable, equity, probing, consistency, knowledge, explain)
    section_name = section or next((name for name, flag in zip(PARTS, flags, strict=True) if flag), "")
    other_runs = _others(against, section_name)
    if json_file is not None:
        _write_rows(json_file, runs, registry.report_sections, section_name, watts)
    render = _render(chosen, section_name, registry.report_sections, other_runs, watts)
    if output is not None:
        _write(chosen, render, runs, output)
    elif chosen.name == "console" and not other_runs:
        if section_name:
            _print(runs, registry.report_sections, section_name, watts)
        else:
            show_runs(runs, details=not brief, by=by)
    else:
        echo(render(runs), nl=False)


def _write(
    chosen: ReportFormat, render: Callable[[Sequence[Run]], str], runs: Sequence[Run], output: Path
) -> None:
    """Write the report to a file, or the files of a format that writes several into a folder."""
    from harness.cli.live import show_steps

    if chosen.write is not None:
        for path in chosen.write(runs, output):
            echo(f"wrote {path}")
    else:
        with show_steps():
            write_file(output, render(runs))


def _format(name: str | None, output: Path | None, reports: NamedTable[ReportFormat]) -> ReportFormat:
    """Return the format of a report, by its name or by the suffix of its file; raises as `choose_format`."""
    from harness.reporting.formats import FORMATS

    every = {report_format.name: report_format for report_format in (*FORMATS, *reports)}
    folders = [report_format.name for report_format in every.values() if report_format.write is not None]
    suffixes = {report_format.name: report_format.suffix for report_format in every.values()}
    if name is not None:
        reports.get(name)
    chosen = reports.get(choose_format(name, output, suffixes, folders=folders))
    if chosen.write is None:
        check_output_file(output)
    return chosen


def _render(
    chosen: ReportFormat,
    part: str,
    sections: NamedTable[ReportSection],
    others: Sequence[Run],
    watts: float | None,
) -> Callable[[Sequence[Run]], str]:
    """Return the function that writes a part of the report in a format, or all of it."""
    from harness.reporting.cost.table import equity_format
    from harness.reporting.overview.paper_tables import matrix_format
    from harness.reporting.sections import section_format

    if part and part not in CORE:
        return section_format(chosen, sections.get(part), others)
    if part == "equity":
        return equity_format(chosen.name, chosen.render, watts=watts)
    return matrix_format(chosen.name, chosen.render) if part == "matrices" else chosen.render


def _others(folders: Sequence[Path] | None, part: str) -> list[Run]:
    """Return the runs of the second group; raises `UsageError` for a part of the report without groups."""
    from harness.storage.run_folder import Run

    if folders and part != "probing":
        raise UsageError("--against goes with --probing; 'harness compare' compares scores of runs.")
    return [Run(folder) for folder in folders or []]


def _write_rows(
    file: Path,
    runs: Sequence[Run],
    sections: NamedTable[ReportSection],
    part: str,
    watts: float | None,
) -> None:
    """Write the rows of a part of the report, by default those of its cells."""
    from harness.reporting.cost.table import equity_rows
    from harness.reporting.overview.paper_tables import matrix_rows
    from harness.reporting.overview.run_remarks import unreadable_answers
    from harness.reporting.render.text import cell_rows
    from harness.reporting.sections import read_section

    if part == "unreadable":
        write_rows(file, list(unreadable_answers(runs[0])))
    elif part and part not in CORE:
        section = read_section(sections.get(part), runs)
        write_rows(file, [] if section is None else section.rows())
    else:
        rows = partial(equity_rows, watts=watts) if part == "equity" else cell_rows
        write_rows(file, (matrix_rows if part == "matrices" else rows)(runs))


def _print_item(
    folders: Sequence[Path],
    identifier: str | None,
    tasks: list[str] | None,
    languages: list[str] | None,
    json_file: Path | None,
) -> None:
    """Print one item of runs, in every task and language that has it; raises `UsageError` where none is named."""
    from harness.cli.live import show_steps
    from harness.reporting.weakness.item_sheet import item_sheets
    from harness.specs.selection import language_codes, split_names
    from harness.storage.run_folder import Run

    if identifier is None:
        raise UsageError("--tasks and --languages go with --item.", hint="A report shows all of its run.")
    runs = [Run(folder) for folder in folders]
    with show_steps():
        names, codes = split_names(tasks or []), language_codes(languages)
        sheets = item_sheets(runs, identifier, tasks=names, languages=codes)
    for number, sheet in enumerate(sheets):
        if number:
            echo("")
        for line in sheet.lines():
            echo(line)
    write_rows(json_file, [sheet.row() for sheet in sheets])


def _print(runs: Sequence[Run], sections: NamedTable[ReportSection], part: str, watts: float | None) -> None:
    """Print one part of the report in all its tables."""
    from harness.cli.display import print_report
    from harness.reporting.cost.cost import equity_report
    from harness.reporting.cost.table import equity_blocks
    from harness.reporting.overview.paper_tables import matrix_report
    from harness.reporting.overview.run_remarks import unreadable_blocks
    from harness.reporting.overview.summary import summarise
    from harness.reporting.overview.summary_blocks import note_blocks, part_blocks

    if part == "equity":
        blocks = equity_blocks(equity_report(runs, watts=watts))
    elif part == "unreadable":
        blocks = unreadable_blocks(runs[0])
    else:
        summary = summarise(runs, sections=tuple(sections) if part in CORE else [sections.get(part)])
        if part == "notes":
            blocks = note_blocks(summary)
        elif part == "matrices":
            blocks = matrix_report(runs, in_terminal=True)
        else:
            blocks = part_blocks(summary, sections.get(part))
    print_report(blocks)
