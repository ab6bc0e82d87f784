"""The report formats that the core brings."""

from __future__ import annotations

from harness.reporting.console import render_text
from harness.reporting.formats import ReportFormat
from harness.reporting.markdown import render_markdown
from harness.reporting.rows import render_csv, render_json

__all__ = ["FORMATS"]

FORMATS = (
    ReportFormat(name="console", suffix=".txt", render=render_text, summary="the table that eval prints"),
    ReportFormat(name="markdown", suffix=".md", render=render_markdown, summary="the same table in Markdown"),
    ReportFormat(name="csv", suffix=".csv", render=render_csv, summary="one row a metric and cell"),
    ReportFormat(name="json", suffix=".json", render=render_json, summary="results.json, baselines included"),
)
