"""The report formats that the core brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.reporting.formats import ReportFormat, ReportSection
from harness.reporting.render.rows import render_csv, render_json

if TYPE_CHECKING:
    from harness.reporting.blocks.model import Block
    from harness.reporting.overview.summary import Summary
    from harness.storage.run_folder import Run

# What reads a run is imported when a report is made: listing formats needs none of it.


def _summary(runs: Sequence[Run], *, in_terminal: bool = False) -> Summary:
    from harness.reporting.overview.summary import summarise
    from harness.reporting.sections import installed_sections

    return summarise(runs, sections=installed_sections(in_terminal=in_terminal))


def terminal_text(runs: Sequence[Run], *, width: int = 100, details: bool = True) -> str:
    """Return the summary as plain text of a given width; with `details` the tables by language are before it."""
    from harness.reporting.overview.glance_blocks import glance_blocks
    from harness.reporting.overview.summary_blocks import detail_blocks
    from harness.reporting.render.console import print_blocks

    summary = _summary(runs, in_terminal=True)
    tables = detail_blocks(summary, width=width) if details else []
    blocks = glance_blocks(runs, summary, width=width, alone=not details)
    return print_blocks([*tables, *blocks], width=width)


def markdown_text(runs: Sequence[Run]) -> str:
    """Return the content of `latex_text` as a Markdown document, with the cost of the languages."""
    from harness.reporting.blocks.model import Note
    from harness.reporting.cost.report import equity_report
    from harness.reporting.cost.table import equity_blocks
    from harness.reporting.render.markdown import escape_markdown, render_markdown

    summary, equity = _summary(runs), equity_report(runs)
    cost = [Note("What the languages cost", "heading"), *equity_blocks(equity)] if equity else []
    return f"# {escape_markdown(summary.title)}\n" + render_markdown([*_blocks(runs, summary), *cost])


def latex_text(runs: Sequence[Run]) -> str:
    """Return the summary of the first run, with the others' means, as LaTeX tables for the booktabs package.

    Several runs that are not each other's baselines come with a table of all means, and a table by language each.
    """
    from harness.reporting.render.latex import render_latex

    return render_latex(_blocks(runs, _summary(runs)))


def _blocks(runs: Sequence[Run], summary: Summary) -> list[Block]:
    """Return the summary of the first run; of several, all means before it, and the others' tables after it."""
    from harness.reporting.overview.material import read_material
    from harness.reporting.overview.summary import summarise
    from harness.reporting.overview.summary_blocks import language_table, summary_blocks
    from harness.reporting.overview.systems import system_table

    material = read_material(runs) if len(runs) > 1 else None
    if material is None or len(material.runs) < 2:
        return summary_blocks(summary)
    means = system_table(material)
    tables = [replace(language_table(summarise([run])), untitled=False) for run in material.runs[1:]]
    return [*([] if means is None else [means]), *summary_blocks(summary), *tables]


def html_text(runs: Sequence[Run]) -> str:
    """Return the whole report as one page."""
    from harness.reporting.html_report import html_report
    from harness.reporting.render.page import render_html

    return render_html(html_report(runs))


def _figures(format_name: str) -> ReportFormat:
    """Return a format that writes the charts of every run into a folder."""

    def render(runs: Sequence[Run]) -> str:
        raise UsageError(
            f"The format {format_name!r} writes figures into a folder.", hint="Name it with --output."
        )

    def write(runs: Sequence[Run], folder: Path) -> list[Path]:
        from harness.reporting.overview.figures import write_figures

        return write_figures(runs, folder, format_name)

    return ReportFormat(
        name=format_name,
        suffix=f".{format_name}",
        render=render,
        summary="heat map, gap and layer curves of runs as figures",
        write=write,
    )


FORMATS = (
    ReportFormat(
        name="console", suffix=".txt", render=terminal_text, summary="tables and summary for a terminal"
    ),
    ReportFormat(
        name="markdown", suffix=".md", render=markdown_text, summary="tables by language in Markdown"
    ),
    ReportFormat(name="html", suffix=".html", render=html_text, summary="one self-contained page"),
    ReportFormat(name="latex", suffix=".tex", render=latex_text, summary="tables of the summary in LaTeX"),
    ReportFormat(name="csv", suffix=".csv", render=render_csv, summary="one row per metric and cell"),
    ReportFormat(name="json", suffix=".json", render=render_json, summary="results.json, baselines included"),
    *map(_figures, ("svg", "pdf", "png")),
)

SECTIONS = (
    ReportSection(
        name="consistency",
        title="Consistency between languages",
        target="harness.reporting.languages.consistency:read_consistency",
        empty="This run has no parallel task in two languages.",
    ),
    ReportSection(
        name="explain",
        title="What goes with the scores of languages",
        target="harness.reporting.languages.explanation:read_explanation",
        in_terminal=False,
        empty="These runs have no task with scores in 10 languages of 4 families besides English, "
        "on data that are not the sample.",
    ),
    ReportSection(
        name="asked",
        title="How answers were asked for and read",
        target="harness.reporting.prompting.asked:read_asked",
    ),
)
