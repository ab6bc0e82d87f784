"""The sections that plugins add to reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from harness.errors import BrokenPluginError, HarnessError, UsageError
from harness.registry.declarations import ReportFormat, ReportSection
from harness.registry.discovery import discover
from harness.registry.plugin import describe_fault
from harness.registry.registry import Registry
from harness.reporting.blocks.model import Block, Notes
from harness.reporting.formats import SectionReport, read_section
from harness.reporting.render.console import print_blocks
from harness.reporting.render.latex import render_latex
from harness.reporting.render.markdown import render_markdown
from harness.reporting.render.rows import csv_text
from harness.storage.run_folder import Run


def installed_sections(*, in_terminal: bool = False) -> tuple[ReportSection, ...]:
    """Return the sections of the installed plugins, by name; of those for a terminal only, where asked."""
    sections = Registry(discover()).report_sections
    return tuple(section for section in sections if section.in_terminal or not in_terminal)


def installed_registry() -> Registry:
    """Return the declarations of the installed plugins, for reports to which none are handed in."""
    from harness.running.session import open_session

    return open_session().registry


def read_sections(
    runs: Sequence[Run], sections: Sequence[ReportSection]
) -> dict[ReportSection, SectionReport]:
    """Return the reports of sections on runs, without the sections that have nothing to show.

    A section that raises is replaced with one sentence, so that the scores are still printed.
    """
    reports = ((section, _read(section, runs)) for section in sections)
    return {section: report for section, report in reports if report is not None}


def _read(section: ReportSection, runs: Sequence[Run]) -> SectionReport | None:
    try:
        return read_section(section, runs)
    except BrokenPluginError as error:
        return SectionReport(notes=(error.message,))
    except HarnessError as error:
        fault, _ = describe_fault(error)
        return SectionReport(notes=(f"The report section {section.name!r} is missing: {fault}.",))


def section_format(
    chosen: ReportFormat, section: ReportSection, against: Sequence[Run] = ()
) -> Callable[[Sequence[Run]], str]:
    """Return the function that writes one section in a format, or with `against` how its runs differ from these.

    HTML, figures and the formats of plugins write what they always do: their files have all sections, or one. What is
    returned raises `UsageError` where the runs have nothing of the section.
    """

    def report(runs: Sequence[Run]) -> SectionReport:
        section_report = read_section(section, runs)
        if section_report is None:
            raise UsageError(section.empty)
        return section_report

    def blocks(section_report: SectionReport) -> Sequence[Block]:
        return (
            section_report.against(against)
            if against
            else (*section_report.blocks, Notes(section_report.notes))
        )

    def latex(runs: Sequence[Run]) -> str:
        section_report = report(runs)
        return render_latex([*([] if against else section_report.papers()), *blocks(section_report)])

    def markdown(runs: Sequence[Run]) -> str:
        return render_markdown(blocks(report(runs))).lstrip()

    written: Mapping[str, Callable[[Sequence[Run]], str]] = {
        **({"console": lambda runs: print_blocks(blocks(report(runs)))} if against else {}),
        "latex": latex,
        "markdown": markdown,
        "csv": lambda runs: csv_text(report(runs).rows()),
        "json": lambda runs: json.dumps(report(runs).rows(), ensure_ascii=False, indent=1) + "\n",
    }
    return written.get(chosen.name, chosen.render)
