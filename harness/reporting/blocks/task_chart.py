"""The chart of a report's first screen: one row per task on a common axis from 0 to 100."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

Key = tuple[str, int, str]
"""An entry of a legend: the sign that the template ``charts.html.j2`` draws, its variant, and what it means."""
MarkKind = Literal["language", "source", "run", "baseline", "published"]
SYSTEMS: Mapping[MarkKind, str] = {"run": "", "baseline": "baseline ", "published": "published "}
"""The kinds of systems, and what a legend has before their names."""


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
    words: str = ""
    """Its description, in a few words."""
    value: float | None = None
    """The mean, in points."""
    text: str = ""
    """The mean as it is printed, with its marks."""
    small: str = ""
    """How sure the mean is."""
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    marks: Sequence[Mark] = ()
    weakest: Sequence[str] = ()
    """Names of the languages that have the lowest score."""
    lowest: float | None = None
    """The lowest score, in points; None where the task has few languages."""

    @property
    def weakest_text(self) -> str:
        """The label of the lowest dot: ``Swahili``, or ``Swahili +2`` where two more have the same score."""
        name, *ties = self.weakest
        return f"{name} +{len(ties)}" if ties else name

    @property
    def description(self) -> str:
        """The row in words, for screen readers."""
        phrases = [f"mean {self.text} {self.small}".strip()] if self.text else []
        if self.lowest is not None:
            phrases.append(f"lowest {', '.join(self.weakest)} {self.lowest:.1f}")
        phrases += [f"{mark.label} {mark.value:.1f}" for mark in self.marks if mark.kind != "language"]
        if self.chance is not None:
            phrases.append(f"chance {self.chance:.1f}")
        return f"{self.name}: {', '.join(phrases)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChart:
    """A mean with its interval, a dot per language, and what it is compared with, for each task."""

    kind: ClassVar[str] = "tasks"
    title: str
    rows: Sequence[TaskRow]
    ticks: ClassVar[Sequence[int]] = (0, 25, 50, 75, 100)

    @property
    def description(self) -> str:
        """The rows in words, for screen readers."""
        return "; ".join(row.description for row in self.rows)

    @property
    def keys(self) -> list[Key]:
        """The marks that the chart has, what each of them is, and its variant: a system has a mark of its own."""
        keys: list[Key] = []
        if any(row.text for row in self.rows):
            keys = [("mean", 0, "mean, 95 % interval"), ("language", 0, "a language")]
        if sources := self._labels("source"):
            keys.append(("source", 0, ", ".join(sources)))
        for kind, before in SYSTEMS.items():
            keys += [(kind, at, f"{before}{label}") for at, label in enumerate(self._labels(kind))]
        if any(row.chance is not None for row in self.rows):
            keys.append(("chance", 0, "chance"))
        return keys

    def variant(self, mark: Mark) -> int:
        """Return the place of a mark's system among those of its kind, which decides its shape."""
        return 0 if mark.kind in {"language", "source"} else self._labels(mark.kind).index(mark.label)

    def _labels(self, kind: MarkKind) -> list[str]:
        return list(dict.fromkeys(mark.label for row in self.rows for mark in row.marks if mark.kind == kind))

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
    labels = (
        f"{'published ' if mark.kind == 'published' else ''}{mark.label} {mark.value:.1f}"
        for mark in row.marks
        if mark.kind in kinds
    )
    return ", ".join(labels) or "-"
