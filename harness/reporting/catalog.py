"""The report formats that the core brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.reporting.formats import ReportFormat, ReportSection
from harness.reporting.rows import render_csv, render_json

if TYPE_CHECKING:
    from harness.reporting.summary import Summary
    from harness.storage.run_folder import Run

__all__ = ["FORMATS", "SECTIONS", "html_text", "latex_text", "markdown_text", "terminal_text"]

# What reads a run is imported when a report is made: listing formats needs none of it.


def _summary(runs: Sequence[Run]) -> Summary:
    from harness.reporting.sections import installed_sections
    from harness.reporting.summary import summarise

    return summarise(runs, sections=installed_sections())


def terminal_text(runs: Sequence[Run], *, width: int = 100, details: bool = True) -> str:
    """Return the summary as plain text of a given width; with `details` the tables by language are before it."""
    from harness.reporting.console import print_blocks
    from harness.reporting.glance_blocks import glance_blocks
    from harness.reporting.summary_blocks import detail_blocks

    summary = _summary(runs)
    tables = detail_blocks(summary, width=width) if details else []
    shown = glance_blocks(runs, summary, width=width, alone=not details)
    return print_blocks([*tables, *shown], width=width)


def markdown_text(runs: Sequence[Run]) -> str:
    """Return the summary of the first run, the others' means under it, as a Markdown document."""
    from harness.reporting.equity.report import equity_report
    from harness.reporting.equity.table import equity_blocks
    from harness.reporting.markdown import escape_markdown, render_markdown
    from harness.reporting.model import Note
    from harness.reporting.summary_blocks import summary_blocks

    summary, equity = _summary(runs), equity_report(runs)
    cost = [Note("What the languages cost", "heading"), *equity_blocks(equity)] if equity else []
    return f"# {escape_markdown(summary.title)}\n" + render_markdown([*summary_blocks(summary), *cost])


def latex_text(runs: Sequence[Run]) -> str:
    """Return the summary of the first run, the others' means under it, as LaTeX tables for the booktabs package."""
    from harness.reporting.latex import render_latex
    from harness.reporting.summary_blocks import summary_blocks

    return render_latex(summary_blocks(_summary(runs)))


def html_text(runs: Sequence[Run]) -> str:
    """Return the whole report as one page."""
    from harness.reporting.html_report import html_report
    from harness.reporting.page import render_html

    return render_html(html_report(runs))


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
)

SECTIONS = (
    ReportSection(
        name="consistency",
        title="Consistency between languages",
        target="harness.reporting.consistency:read_consistency",
        empty="This run has no parallel task in two languages.",
    ),
    ReportSection(
        name="asked",
        title="Several answers per item, and several prompts",
        target="harness.reporting.asked:read_asked",
    ),
)
