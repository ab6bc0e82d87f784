"""What plugins declare for reports: formats, and sections about results that only they know."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness.reporting.text_table import TextTable
from harness.storage.run_folder import Run

if TYPE_CHECKING:
    from rich.console import RenderableType

    from harness.reporting.markup.element import Element

__all__ = ["ReportFormat", "ReportSection", "SectionReport", "TaskDetails"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFormat:
    """One way to write a report about runs."""

    name: str
    """``markdown``, ``csv``: what ``--format`` takes."""
    suffix: str
    """Of files in this format: ``.md``."""
    render: Callable[[Sequence[Run]], str]
    """Takes the runs, the main one first, and returns the text of the report."""
    summary: str = ""
    write: Callable[[Sequence[Run], Path], list[Path]] | None = None
    """For formats of several files: takes the runs and the folder of ``--output``, and returns the written files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """The declaration of one section of every report; its code is imported when a report is made."""

    name: str
    """``harness report RUN --NAME`` prints the section alone, where the command has this option."""
    title: str
    """What the section is about, in a few words."""
    target: str
    """``module:callable``, called as ``callable(runs)``; returns a `SectionReport`, or None for runs without it."""
    place: Literal["scores", "items"] = "scores"
    """Where the HTML page has it: after the scores, or before the single items."""
    empty: str = "This run has nothing to show here."
    """What is printed when the section alone is asked for, and the run has nothing of it."""

    def read(self, runs: Sequence[Run]) -> SectionReport | None:
        """Return the section of runs, the main run first; None where they have nothing of it."""
        module, _, attribute = self.target.partition(":")
        make: Callable[[Sequence[Run]], SectionReport | None] = getattr(
            importlib.import_module(module), attribute
        )
        return make(runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDetails:
    """What a section adds to a page about one task of one run."""

    title: str
    note: str
    parts: tuple[Element, ...]
    """Empty where only `problems` are to be reported."""
    problems: tuple[str, ...] = ()
    """What could not be read, a sentence each."""


class SectionReport:
    """What a section shows of runs. A plugin overrides what its section has; the rest shows nothing."""

    @property
    def tables(self) -> Sequence[TextTable]:
        """Tables for LaTeX."""
        return ()

    @property
    def notes(self) -> Sequence[str]:
        """Sentences at the end of the section."""
        return ()

    @property
    def covered(self) -> frozenset[tuple[str, str, str]]:
        """Task, method and conditions of the main run's columns that the terminal shows in this section only."""
        return frozenset()

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows for ``--json``; scores are fractions."""
        return []

    def render_console(self, width: int, *, whole: bool = False) -> Sequence[RenderableType]:
        """Return the section for a terminal of this width: the part for a summary, or the `whole` section."""
        return ()

    def render_markdown(self) -> Sequence[str]:
        """Return the lines of the section in Markdown, with its notes."""
        return ()

    def render_page(self) -> Element | None:
        """Return the section of the HTML page, made with `harness.reporting.html.layout.section`."""
        return None

    def task_details(self, task: str) -> TaskDetails | None:
        """Return what a page about one task shows of the main run; None where there is nothing."""
        return None
