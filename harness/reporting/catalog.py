"""The report formats that the core brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.reporting.console import render_text
from harness.reporting.formats import ReportFormat
from harness.reporting.latex import render_latex
from harness.reporting.markdown import render_markdown
from harness.reporting.rows import render_csv, render_json

if TYPE_CHECKING:
    from harness.storage.run_folder import Run

__all__ = ["FORMATS"]


def _render_html(runs: Sequence[Run]) -> str:
    # It reads plugins, charts and statistics, which the other formats do without.
    from harness.reporting.html.report import render_html

    return render_html(runs)


FORMATS = (
    ReportFormat(name="console", suffix=".txt", render=render_text, summary="the table that eval prints"),
    ReportFormat(name="markdown", suffix=".md", render=render_markdown, summary="the same table in Markdown"),
    ReportFormat(name="html", suffix=".html", render=_render_html, summary="one self-contained page"),
    ReportFormat(name="latex", suffix=".tex", render=render_latex, summary="tables of the summary in LaTeX"),
    ReportFormat(name="csv", suffix=".csv", render=render_csv, summary="one row per metric and cell"),
    ReportFormat(name="json", suffix=".json", render=render_json, summary="results.json, baselines included"),
)
