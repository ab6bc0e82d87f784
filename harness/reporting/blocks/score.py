"""One field of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The content of one field: a score in [0, 1], or why there is none."""

    value: float | None = None
    interval: tuple[float, float] | None = None
    """The ends of the 95 % interval."""
    mark: str = ""
    """``*`` scored on another split than test, ``!`` failed, ``~`` over fewer languages, ``°`` not comparable;
    those of `unreadable`, `item_origin` and `mean_row` in `harness.reporting.overview`."""

    @property
    def reach(self) -> float | None:
        """Half of its interval, the longer side of one that is not symmetric; None where it is not known."""
        if self.value is None or self.interval is None:
            return None
        return max(self.value - self.interval[0], self.interval[1] - self.value)


def mean_score(scores: Sequence[Score]) -> Score:
    """Return the mean of the scores that have a value."""
    values = [score.value for score in scores if score.value is not None]
    return Score(value=fmean(values)) if values else Score()
