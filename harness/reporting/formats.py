"""Sections that plugins add to reports, about results that only they know."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.errors import BrokenPluginError, HarnessError
from harness.registry.declarations import ReportSection
from harness.registry.plugin import describe_fault
from harness.reporting.blocks.chart import CurveChart
from harness.reporting.blocks.model import Block, Notes
from harness.storage.run_folder import Run


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
