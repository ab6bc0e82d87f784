"""The section of reports that shows the probes of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness import Run, SectionReport
from harness.reporting.markdown import escape_markdown, text_table_lines
from harness.reporting.text_table import TextTable
from harness_probing.reporting.console import render_probing
from harness_probing.reporting.curve import Curve, sparkline
from harness_probing.reporting.report import ProbingReport, ProbingSection, probing_report
from harness_probing.reporting.rows import probe_rows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.reporting.markup.element import Element

__all__ = ["ProbeReport", "read_probing"]


class ProbeReport(SectionReport):
    """What all reports show of the probes of runs."""

    def __init__(self, runs: Sequence[Run], report: ProbingReport) -> None:
        self._runs = runs
        self._report = report

    @property
    def tables(self) -> Sequence[TextTable]:
        """All tables of all languages and methods."""
        return [table for section in self._report.sections for table in section.tables]

    @property
    def notes(self) -> Sequence[str]:
        """A sentence for each run that cannot be read."""
        return self._report.notes

    @property
    def covered(self) -> frozenset[tuple[str, str, str]]:
        """Task, method and conditions of the columns whose scores are all from probes."""
        return self._report.shown

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per layer."""
        return probe_rows(self._runs)

    def render_console(self, width: int, *, whole: bool = False) -> Sequence[RenderableType]:
        """Return the tables and layer curves for a terminal."""
        return render_probing(self._report, width=width, whole=whole)

    def render_markdown(self) -> Sequence[str]:
        """Return the tables and layer curves as Markdown."""
        lines = [line for section in self._report.sections for line in _section_lines(section)]
        return [*lines, *(f"- {escape_markdown(note)}" for note in self.notes)]

    def render_page(self) -> Element | None:
        """Return the tables and charts of the HTML page."""
        from harness_probing.reporting.page import probing_section

        return probing_section(self._report)


def read_probing(runs: Sequence[Run]) -> ProbeReport | None:
    """Return the section of runs; None where nothing was probed."""
    report = probing_report(runs)
    return ProbeReport(runs, report) if report else None


def _section_lines(section: ProbingSection) -> list[str]:
    lines = ["", f"## {escape_markdown(section.title)}"]
    for table in section.tables:
        lines += text_table_lines(table)
    lines += ["", "### Layer curves", "", "| task | probe | control | random | low | high | best |"]
    lines.append("| --- | --- | --- | --- | ---: | ---: | ---: |")
    return [*lines, *(_curve_row(curve) for curve in section.curves)]


def _curve_row(curve: Curve) -> str:
    probe = curve.probe
    low, high = curve.limits
    lines = " | ".join(
        f"`{line}`" if (line := sparkline(own, curve.limits)) else "-" for own in curve.lines.values()
    )
    name = escape_markdown(probe.name)
    return f"| {name} | {lines} | {low * 100:.1f} | {high * 100:.1f} | {probe.best['layer']} |"
