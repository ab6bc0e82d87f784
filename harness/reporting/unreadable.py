"""Cells whose answers could mostly not be read: what they have is no score of the task."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from harness.reporting.score import Score
from harness.storage.results import CellResult

__all__ = [
    "UNREADABLE",
    "WITH_UNREADABLE",
    "is_unreadable",
    "marked_mean",
    "unread_count",
    "unreadable_notes",
]

UNREADABLE = "unreadable"
"""Shown instead of a score."""
WITH_UNREADABLE = "?"
"""The mark of a mean over cells of which some are unreadable."""
MOST_UNPARSED = 0.5
"""Share of a cell's answers above which it is unreadable, where no rule could read them, cut or whole."""


def is_unreadable(cell: CellResult) -> bool:
    """Return whether more than half of a finished cell's answers could not be read."""
    return cell.status == "ok" and bool(unread_count(cell) > MOST_UNPARSED * cell.n)


def marked_mean(score: Score, languages: Collection[str], unreadable: Collection[str]) -> Score:
    """Return the mean over some languages with a mark where some are unreadable; no score where all are."""
    if score.value is None or not set(languages) & set(unreadable):
        return score
    if set(languages) <= set(unreadable):
        return Score(mark=UNREADABLE)
    return replace(score, mark=f"{score.mark}{WITH_UNREADABLE}")


def unreadable_notes(cells: Sequence[CellResult]) -> list[str]:
    """Return a sentence that names the unreadable cells, with how many of their answers could not be read."""
    named = [
        f"{cell.task}:{cell.language} ({unread_count(cell):,} of {cell.n:,})"
        for cell in cells
        if is_unreadable(cell)
    ]
    if not named:
        return []
    return [
        f"{UNREADABLE}: more than half of the answers could not be read, which says nothing about the task; try "
        f"another --prompt, --chat or --constrained{_more_room(cells)}: {', '.join(named)}"
    ]


def unread_count(cell: CellResult) -> int:
    """Return how many answers of a cell could not be read, or were cut before they could be."""
    return cell.unparsed + cell.unanswered


def _more_room(cells: Sequence[CellResult]) -> str:
    """Return what else to try where models reason and are cut."""
    cut = any(is_unreadable(cell) and cell.unanswered and cell.reasoning_tokens != 0 for cell in cells)
    return ", and where the reasoning was cut a larger -o reasoning_budget or -o thinking=off" if cut else ""
