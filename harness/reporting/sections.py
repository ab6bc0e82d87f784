"""The sections that plugins add to reports."""

from __future__ import annotations

from collections.abc import Sequence

from harness.registry.discovery import discover
from harness.registry.plugin import describe_fault
from harness.registry.registry import Registry
from harness.reporting.formats import ReportSection, SectionReport
from harness.storage.run_folder import Run

__all__ = ["installed_sections", "read_sections"]


def installed_sections(*, in_terminal: bool = False) -> tuple[ReportSection, ...]:
    """Return the sections of the installed plugins, by name; of those for a terminal only, where asked."""
    found = Registry(discover()).report_sections
    return tuple(section for section in found if section.in_terminal or not in_terminal)


def read_sections(
    runs: Sequence[Run], sections: Sequence[ReportSection]
) -> dict[ReportSection, SectionReport]:
    """Return what sections show of runs, without the sections that have nothing to show.

    A section that raises is replaced with one sentence, so that the scores are still printed.
    """
    found = ((section, _read(section, runs)) for section in sections)
    return {section: report for section, report in found if report is not None}


def _read(section: ReportSection, runs: Sequence[Run]) -> SectionReport | None:
    try:
        return section.read(runs)
    except Exception as error:  # noqa: BLE001, RUF100  a plugin's section may raise anything
        fault, _ = describe_fault(error)
        return SectionReport(notes=(f"The report section {section.name!r} is missing: {fault}.",))
