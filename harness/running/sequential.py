"""How many items of each cell are asked: growing samples that stop at a half-width or when a budget is spent.

A sample of n items is what ``--limit n`` takes, so every sample holds the smaller ones, and samples of a parallel task
have their items in common. Where to stop follows from sizes and from the scores of finished looks alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness.metrics.scoring import MetricScore
from harness.planning.sampling import FEWEST
from harness.storage.results import Look

FIRST = 100
"""Items of the first look."""
GROWTH = 1.5
"""How much larger the next look is; every look is a chance to stop too early, so there are few."""
CLUSTERS = 5
"""An interval of fewer clusters rests on too little for a decision."""
ROUND = 2
"""How many times its items a cell may have after a round of a budget; its half-width is known better then."""
SURELY = 0.95
"""The share of the half-width that a budget aims at, so that the next look is likely to be the last one."""


def sizes(limit: int) -> int:
    """Return the size of the look after one of `limit` items."""
    return math.ceil(GROWTH * limit)


def reach(scores: Mapping[str, MetricScore], headline: Iterable[str]) -> float | None:
    """Return how far the 95 % interval of the first headline metric goes to its longer side, as a fraction.

    None where there is no interval, or one of fewer than five clusters. Items that are all right or all wrong have
    Wilson's interval; those of other scores that are all equal have none.
    """
    score = next((scores[name] for name in headline if name in scores), None)
    if score is None or score.interval.low is None or score.interval.high is None:
        return None
    far = max(score.value - score.interval.low, score.interval.high - score.value)
    return far if far > 0 and (score.interval.groups or 0) >= CLUSTERS else None


@dataclass(slots=True, kw_only=True)
class Sampling:
    """The looks that were taken at the cells of a run, and which one comes next."""

    precision: float | None = None
    """Half-width at which a cell stops, in points."""
    budget: int | None = None
    """Items that all cells may have together."""
    limit: int | None = None
    """Items that a cell may have."""
    looks: dict[str, list[Look]] = field(default_factory=dict)
    """By digest of the cell."""
    asked: dict[str, int] = field(default_factory=dict)
    """By digest: the requests that the looks asked the model."""
    _granted: dict[str, int] = field(default_factory=dict)
    _recorded: dict[str, list[Look]] = field(default_factory=dict)

    @property
    def grows(self) -> bool:
        """Whether cells begin with few items."""
        return self.precision is not None or self.budget is not None

    def wanted(self, digest: str) -> int | None:
        """Return how many items the next look at a cell takes; None where the last one was enough."""
        looks = self.looks.get(digest, [])
        if digest in self._recorded or (looks and self._reason(looks[-1])):
            return None
        if self.budget is not None:
            granted = self._granted.get(digest)
            return granted if granted is not None and (not looks or granted > looks[-1].limit) else None
        return self._capped(sizes(looks[-1].limit) if looks else FIRST)

    def add(self, digest: str, look: Look) -> None:
        """Take a look that was wanted."""
        self.looks.setdefault(digest, []).append(look)

    def size(self, digest: str) -> int | None:
        """Return how many items the cell is scored on, at most."""
        looks = self.looks.get(digest)
        return looks[-1].limit if looks else self.limit

    def stopped(self, digest: str) -> str:
        """Return why a cell stopped: ``precision``, ``budget``, ``limit`` or ``all items``."""
        return self._reason(self.looks[digest][-1]) or "budget"

    def recall(self, recorded: Mapping[str, Iterable[Look]]) -> None:
        """Take the looks at cells that an earlier attempt finished, when rounds come to them."""
        self._recorded = {digest: list(looks) for digest, looks in recorded.items()}

    def next_round(self, digests: Iterable[str]) -> bool:
        """Grant items to the cells of a budget; returns whether any cell got some.

        The first round gives all cells equally many, at most half of the budget. Each further one spreads what is left
        so that the largest half-width becomes as small as it can, if half-widths fall with the square root of the
        size; no cell more than doubles in a round.
        """
        digests = list(digests)
        if self.budget is None or not digests:
            return False
        if not self._granted:
            first = min(FIRST, max(FEWEST, self.budget // (2 * len(digests))))
            self._granted = {digest: self._capped(first) for digest in digests}
        else:
            granted = self._spread(digests)
            if not granted:
                return False
            self._granted |= granted
        recalled = False
        for digest in digests:
            looks = [look for look in self._recorded.get(digest, []) if look.limit <= self._granted[digest]]
            recalled = recalled or len(looks) > len(self.looks.get(digest, []))
            self.looks |= {digest: looks} if looks else {}
        return recalled or any(self.wanted(digest) is not None for digest in digests)

    def _spread(self, digests: Iterable[str]) -> dict[str, int]:
        last = {digest: self.looks[digest][-1] for digest in digests if digest in self.looks}
        remaining = (self.budget or 0) - sum(looks[-1].n for looks in self.looks.values())
        grows = {digest: look for digest, look in last.items() if not self._reason(look)}
        if remaining < max(1, len(grows)):
            return {}
        low, high = 0.0, max(map(_assumed, grows.values()), default=0.0)
        for _ in range(60):  # halved until the items of one more bit are the same
            middle = (low + high) / 2
            spent = sum(self._size_at(look, middle) - look.n for look in grows.values())
            low, high = (middle, high) if spent > remaining else (low, middle)
        found = {digest: min(self._size_at(look, high), ROUND * look.n) for digest, look in grows.items()}
        return {digest: size for digest, size in found.items() if size > grows[digest].n}

    def _size_at(self, look: Look, width: float) -> int:
        """Return how many items a cell needs for a half-width, of those that it has; no fewer than now."""
        most = self._capped(look.size)
        if not width:
            return most
        aim = max(width, SURELY * (self.precision or 0) / 100)
        return max(look.n, min(most, math.floor(look.n * (_assumed(look) / aim) ** 2)))

    def _capped(self, size: int) -> int:
        return size if self.limit is None else min(size, self.limit)

    def _reason(self, look: Look) -> str:
        precise = self.precision is not None and look.half_width is not None
        if precise and 100 * (look.half_width or 0) <= (self.precision or 0):
            return "precision"
        if look.n >= look.size:
            return "all items"
        return "limit" if self.limit is not None and look.limit >= self.limit else ""


def _assumed(look: Look) -> float:
    """Return a half-width to plan with: the widest of right and wrong answers where none is known."""
    return look.half_width or 1 / math.sqrt(look.n)
