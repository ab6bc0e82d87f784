"""What a report format is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.storage.run_folder import Run

__all__ = ["ReportFormat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFormat:
    """One way to write a report about runs."""

    name: str
    """``markdown``, ``csv``: what ``--format`` takes."""
    suffix: str
    """Of files in this format: ``.md``."""
    render: Callable[[Sequence[Run]], str]
    """Runs, the first one foremost -> the text of the report."""
    summary: str = ""
    write: Callable[[Sequence[Run], Path], list[Path]] | None = None
    """For formats of several files: runs and the folder that ``--output`` names -> the files that were written."""
