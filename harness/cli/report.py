"""``harness report``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.output import echo

if TYPE_CHECKING:
    from harness.reporting.formats import ReportSection
    from harness.storage.run_folder import Run
    from harness.table import Table

app = typer.Typer(add_completion=False)
PROBING = "probing"
"""The name of a plugin's section."""


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders, the main one first.")],
    format_name: Annotated[
        str, typer.Option("--format", "-f", help="console, markdown, html, latex, csv, json, or a plugin's.")
    ] = "console",
    output: Annotated[
        Path | None, typer.Option("--output", "--out", help="Write to this file, or folder.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the rows to this file.")
    ] = None,
    matrices: Annotated[
        bool, typer.Option("--matrices", help="Print only the matrices, large ones too.")
    ] = False,
    probing: Annotated[
        bool, typer.Option("--probing", help="Print only the probes of layers, with all their tables.")
    ] = False,
    equity: Annotated[
        bool, typer.Option("--equity", help="Print only what languages cost: fertility, premium, truncation.")
    ] = False,
    with_published: Annotated[
        bool, typer.Option("--with-published", help="Show published scores of the run's suites.")
    ] = False,
) -> None:
    """Print or write the report of a run; baselines that were run with it are shown too."""
    from harness.cli.output import reporting_broken_plugins, write_file, write_rows
    from harness.reporting.equity.rows import equity_format, equity_rows
    from harness.reporting.rows import cell_rows
    from harness.running.manifest import published_documents
    from harness.running.session import open_session
    from harness.storage.run_folder import Run, with_baselines

    session = open_session()
    registry = session.registry
    with reporting_broken_plugins(registry.plugins):
        chosen = registry.reports.get(format_name)
    runs = [run for folder in folders for run in with_baselines(Run(folder))]
    if with_published:
        published = published_documents(session.catalog, runs[0].manifest.suites)
        runs[0].manifest = runs[0].manifest.changed(published=published)
    if json_file is not None:
        if probing and not equity:
            section = registry.report_sections.get(PROBING).read(runs)
            write_rows(json_file, [] if section is None else section.rows())
        else:
            write_rows(json_file, (equity_rows if equity else cell_rows)(runs))
    render = equity_format(format_name, chosen.render) if equity else chosen.render
    if output is not None and chosen.write is not None:
        for path in chosen.write(runs, output):
            echo(f"wrote {path}")
    elif output is not None:
        write_file(output, render(runs))
    elif format_name == "console":
        part = "matrices" if matrices else "equity" if equity else PROBING if probing else ""
        _print(runs, registry.report_sections, part=part)
    else:
        echo(render(runs), nl=False)


def _print(runs: Sequence[Run], sections: Table[ReportSection], *, part: str) -> None:
    """Print the report, or one part of it alone, in all its tables."""
    from harness.cli.display import print_report, stdout
    from harness.reporting.equity.report import equity_report
    from harness.reporting.equity.table import equity_blocks
    from harness.reporting.model import Note
    from harness.reporting.summary import summarise
    from harness.reporting.summary_blocks import matrix_blocks, part_blocks, terminal_blocks

    if part == "equity":
        blocks = equity_blocks(equity_report(runs))
    else:
        summary = summarise(runs, sections=tuple(sections))
        if part == "matrices":
            blocks = matrix_blocks(summary) or [Note("This run has no matrix.")]
        elif part:
            blocks = part_blocks(summary, sections.get(part))
        else:
            blocks = terminal_blocks(summary, width=stdout().width)
    print_report(blocks)
