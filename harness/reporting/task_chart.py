"""The chart of a report's first screen: one row per task on a common axis from 0 to 100."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

__all__ = ["Mark", "TaskChart", "TaskRow"]

TICKS = (0, 25, 50, 75, 100)
MarkKind = Literal["language", "source", "run", "baseline", "published"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One score of a row besides its mean, in points."""

    kind: MarkKind
    label: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """One task."""

    name: str
    words: str
    """What it is, in a few words."""
    value: float | None
    """The mean, in points."""
    text: str
    """The mean as it is printed, with its marks."""
    small: str
    """How sure the mean is."""
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    marks: Sequence[Mark] = ()
    weakest: Sequence[str] = ()
    """Codes of the languages that have the lowest score."""
    lowest: float | None = None
    """The lowest score, in points; None where the task has few languages."""

    @property
    def weakest_text(self) -> str:
        """The label of the lowest dot: ``sw``, or ``sw +2`` where two more have the same score."""
        code, *others = self.weakest
        return f"{code} +{len(others)}" if others else code

    @property
    def description(self) -> str:
        """The row in words, for screen readers."""
        parts = [f"mean {self.text} {self.small}".strip()]
        if self.lowest is not None:
            parts.append(f"lowest {' '.join(self.weakest)} {self.lowest:.1f}")
        parts += [f"{mark.label} {mark.value:.1f}" for mark in self.marks if mark.kind != "language"]
        if self.chance is not None:
            parts.append(f"chance {self.chance:.1f}")
        return f"{self.name}: {', '.join(parts)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChart:
    """A mean with its interval, a dot per language, and what it is compared with, for each task."""

    kind: ClassVar[str] = "tasks"
    title: str
    rows: Sequence[TaskRow]
    ticks: ClassVar[Sequence[int]] = TICKS

    @property
    def legend(self) -> list[tuple[str, str]]:
        """The marks that the chart has, and what each of them is."""
        found = [("mean", "mean, 95 % interval"), ("language", "a language")]
        found += [
            (kind, words)
            for kind, words in (
                ("source", self._names("source")),
                ("run", self._names("run")),
                ("baseline", f"baseline {self._names('baseline')}"),
                ("published", f"published {self._names('published')}"),
            )
            if any(mark.kind == kind for row in self.rows for mark in row.marks)
        ]
        if any(row.chance is not None for row in self.rows):
            found.append(("chance", "chance"))
        return found

    def _names(self, kind: MarkKind) -> str:
        labels = dict.fromkeys(mark.label for row in self.rows for mark in row.marks if mark.kind == kind)
        return ", ".join(labels)

    @property
    def data(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """Heads and rows of the values as a table: one row per task."""
        heads = ("task", "mean", "low", "high", "chance", "languages", "compared with")
        return heads, [
            (
                row.name,
                row.text,
                *("-" if value is None else f"{value:.1f}" for value in (row.low, row.high, row.chance)),
                _listed(row, {"source", "language"}),
                _listed(row, {"run", "baseline", "published"}),
            )
            for row in self.rows
        ]


def _listed(row: TaskRow, kinds: set[MarkKind]) -> str:
    found = (
        f"{'published ' if mark.kind == 'published' else ''}{mark.label} {mark.value:.1f}"
        for mark in row.marks
        if mark.kind in kinds
    )
    return ", ".join(found) or "-"
