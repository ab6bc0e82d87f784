"""Differences with their intervals around 0: a forest plot in a page, and a strip of characters in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from harness.reporting.blocks.chart import Scale
from harness.reporting.blocks.task_chart import Key

STRIP = 21
"""Characters of a strip; 0 is in the middle."""
LEAST_REACH = 1.0
"""Points to each side of 0 that an axis has at least."""


DECIDES = "p after Holm decides (p ≤ .05); an interval is of one difference alone, and may exclude 0 where p does not."
"""Advice for a reader where the interval and the test of one difference do not agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestRow:
    """One difference, in points."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    depth: int = 0
    """How far its label is indented."""
    significant: bool | None = None
    """Whether it is called a difference; None leaves it to the interval."""

    @property
    def text(self) -> str:
        """The difference with its sign."""
        return "-" if self.value is None else f"{round(self.value, 1) + 0.0:+.1f}"

    @property
    def ends(self) -> str:
        """``-16.3 to -3.3``; empty without an interval."""
        if self.low is None or self.high is None:
            return ""
        return f"{round(self.low, 1) + 0.0:+.1f} to {round(self.high, 1) + 0.0:+.1f}"

    @property
    def written(self) -> str:
        """The difference with its interval."""
        return f"{self.text} ({self.ends})" if self.ends else self.text

    @property
    def is_disputed(self) -> bool:
        """Whether the interval is beyond 0, but the test decides that there is no difference."""
        return self.significant is False and replace(self, significant=None).direction != "even"

    @property
    def direction(self) -> Literal["up", "down", "even"]:
        """Which way the difference goes; ``even`` where it is none."""
        is_significant = self.significant
        if is_significant is None:
            is_significant = (
                self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)
            )
        if self.value is None or not is_significant:
            return "even"
        return "up" if self.value > 0 else "down"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestChart:
    """Differences around 0, one row each; those that are significant have a colour. Each row has its values as text."""

    kind: ClassVar[str] = "forest"
    title: str
    rows: tuple[ForestRow, ...]
    left: str = "lower"
    """Meaning of a difference below 0."""
    right: str = "higher"
    keys: ClassVar[Sequence[Key]] = ()

    @property
    def description(self) -> str:
        """The rows in words, for screen readers."""
        return "; ".join(f"{row.label}: {row.written}" for row in self.rows)

    @property
    def note(self) -> str:
        """Note on the test that decides, where the interval and the test of a row do not agree; else empty."""
        return f"Grey: no difference. {DECIDES}" if any(row.is_disputed for row in self.rows) else ""

    @property
    def reach(self) -> float:
        """How far the axis goes to each side of 0, in points."""
        return _reach(self.rows)

    @property
    def scale(self) -> Scale:
        """The axis, as shares of its width."""
        return Scale(low=-self.reach, high=self.reach, start=0, end=100)


def _reach(rows: Sequence[ForestRow]) -> float:
    ends = [abs(end) for row in rows for end in (row.value, row.low, row.high) if end is not None]
    return max([LEAST_REACH, *ends]) * 1.05


def strip(row: ForestRow, rows: Sequence[ForestRow]) -> str:
    """Return a difference as characters, ``   --o--  |    ``, on the axis of all rows; empty without a value."""
    if row.value is None:
        return ""
    reach = _reach(rows)
    middle = STRIP // 2

    def place(value: float) -> int:
        return min(STRIP - 1, max(0, middle + round(value / reach * middle)))

    characters = [" "] * STRIP
    if row.low is not None and row.high is not None:
        for at in range(place(row.low), place(row.high) + 1):
            characters[at] = "-"
    characters[middle] = "|"
    characters[place(row.value)] = "o"
    return "".join(characters)
