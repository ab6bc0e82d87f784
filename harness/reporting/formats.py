"""What plugins declare for reports: formats, and sections about results that only they know."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.reporting.model import Block, Notes
from harness.storage.run_folder import Run

__all__ = ["ReportFormat", "ReportSection", "SectionReport"]


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
    in_terminal: bool = True
    """Whether summaries in a terminal read it; other sections are in documents, and printed alone on request."""
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
class SectionReport:
    """What a section shows of runs, in every format."""

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
    of_task: Callable[[str], SectionReport | None] = lambda task: None
    """Returns what a page about one task shows of the main run; None where there is nothing."""

    @property
    def brief_blocks(self) -> Sequence[Block]:
        """The blocks and notes of the summary in a terminal."""
        return (*(self.blocks if self.brief is None else self.brief), Notes(self.notes))
