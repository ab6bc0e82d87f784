"""Sections that plugins add to reports, about results that only they know."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.errors import BrokenPluginError, HarnessError, UsageError
from harness.registry.declarations import ReportFormat, ReportSection
from harness.registry.discovery import discover
from harness.registry.plugin import describe_fault
from harness.registry.registry import Registry
from harness.reporting.blocks.chart import CurveChart
from harness.reporting.blocks.model import Block, Notes
from harness.reporting.render.console import print_blocks
from harness.reporting.render.text import csv_text, render_latex, render_markdown
from harness.storage.run_folder import Run

Render = Callable[[Sequence[Run]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionReport:
    """Content of a section on runs, in every format."""

    blocks: Sequence[Block] = ()
    """The whole section."""
    brief: Sequence[Block] | None = None
    """The part that the summary in a terminal shows; by default all of it. An empty one is in documents only."""
    notes: Sequence[str] = ()
    """Sentences at its end."""
    covered: frozenset[tuple[str, str, str]] = frozenset()
    """Task, method and conditions of the main run's columns that the terminal shows in this section only."""
    details_only: bool = False
    """Whether the summary that ends a run does not show it: ``harness report`` and documents have it."""
    page_only: bool = False
    """Whether only the HTML page has it."""
    rows: Callable[[], list[dict[str, Any]]] = list
    """Returns the rows for ``--json``; scores are fractions."""
    papers: Callable[[], Sequence[Block]] = tuple
    """Returns tables as a paper prints them, which LaTeX of the section alone begins with."""
    against: Callable[[Sequence[Run]], Sequence[Block]] = lambda runs: ()
    """Takes a second group of runs, and returns what the runs of the section score more or less than these."""
    figures: Callable[[], Mapping[str, CurveChart]] = dict
    """Returns charts to write as files, by the name of the file without its suffix."""
    of_task: Callable[[str], SectionReport | None] = lambda task: None
    """Returns what a page about one task shows of the main run; None where there is nothing."""

    @property
    def all_blocks(self) -> Sequence[Block]:
        """The blocks and notes of documents."""
        return (*self.blocks, Notes(self.notes))

    @property
    def brief_blocks(self) -> Sequence[Block]:
        """The blocks and notes of the summary in a terminal."""
        return (*(self.blocks if self.brief is None else self.brief), Notes(self.notes))


def read_section(section: ReportSection, runs: Sequence[Run]) -> SectionReport | None:
    """Return the section of runs, the main run first; None where they have nothing of it.

    Raises `BrokenPluginError` with its name, distribution, file and line where its code raises, now or when one
    of the callables of the report is called; errors of the harness are raised as they are.
    """
    report: SectionReport | None = _guarded(section, partial(_made, section))(runs)
    lazy = ("rows", "papers", "against", "figures", "of_task")
    guarded: dict[str, Any] = {name: _guarded(section, getattr(report, name)) for name in lazy if report}
    return report and replace(report, **guarded)


def _made(section: ReportSection, runs: Sequence[Run]) -> SectionReport | None:
    module, _, attribute = section.target.partition(":")
    report = getattr(importlib.import_module(module), attribute)(runs)
    if report is None:
        return None
    if not isinstance(report, SectionReport):
        raise TypeError(f"it returned {type(report).__name__}, expected SectionReport or None")
    blocks: tuple[Any, ...] = tuple(report.blocks)
    if wrong := [block for block in blocks if not isinstance(block, Block)]:
        raise TypeError(
            f"its block {wrong[0]!r} is of {type(wrong[0]).__name__}, expected Table, Fold or Notes"
        )
    return replace(report, blocks=blocks)


def _guarded(section: ReportSection, call: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*given: Any) -> Any:
        try:
            return call(*given)
        except HarnessError:
            raise
        except Exception as error:
            raise BrokenPluginError(_fault(section, error)) from error

    return guarded


def _fault(section: ReportSection, error: Exception) -> str:
    """Return the sentence about an error; its place is the last line within the package of the section."""
    package = re.split(r"[.:]", section.target)[0]
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        frames.append((error.filename or "", error.lineno))
    inside = [Path(name).parts for name, _ in frames]
    numbers = [
        number for number, segments in enumerate(inside) if package in {*segments, Path(segments[-1]).stem}
    ]
    where = (
        f"in {'/'.join(inside[numbers[-1]][-2:])}, line {frames[numbers[-1]][1]}"
        if numbers
        else f"from {section.target!r}"
    )
    distributions = importlib.metadata.packages_distributions().get(package, [package])
    fault = describe_fault(error)[0].rstrip(".")
    return f"The report section {section.name!r} of {distributions[0]} is missing: {fault} ({where})."


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


def section_format(chosen: ReportFormat, section: ReportSection, against: Sequence[Run] = ()) -> Render:
    """Return the function that writes one section in a format, or with `against` how its runs differ from these.

    HTML, figures and the formats of plugins write what they always do: their files have all sections, or one. What is
    returned raises `UsageError` where the runs have nothing of the section.
    """

    def report(runs: Sequence[Run]) -> SectionReport:
        section_report = read_section(section, runs)
        if section_report is None:
            raise UsageError(section.empty)
        return section_report

    def blocks(runs: Sequence[Run], *, with_papers: bool = False) -> Sequence[Block]:
        section_report = report(runs)
        if against:
            return section_report.against(against)
        return [*(section_report.papers() if with_papers else ()), *section_report.all_blocks]

    written = written_formats(blocks, lambda runs: report(runs).rows(), partial(blocks, with_papers=True))
    if against:
        written["console"] = lambda runs: print_blocks(blocks(runs))
    return written.get(chosen.name, chosen.render)


def written_formats(
    blocks: Callable[[Sequence[Run]], Sequence[Block]],
    rows: Callable[[Sequence[Run]], list[dict[str, Any]]],
    latex: Callable[[Sequence[Run]], Sequence[Block]] | None = None,
) -> dict[str, Render]:
    """Return by name the formats of a part of a report alone: its blocks, or those of `latex`, and its rows."""
    return {
        "csv": lambda runs: csv_text(rows(runs)),
        "json": lambda runs: json.dumps(rows(runs), ensure_ascii=False, indent=1) + "\n",
        "latex": lambda runs: render_latex((latex or blocks)(runs)),
        "markdown": lambda runs: render_markdown(blocks(runs)).lstrip(),
    }
