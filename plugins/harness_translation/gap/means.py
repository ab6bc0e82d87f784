"""Mean scores, and those of resamples of the items; all versions and languages share the resamples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.statistics import DRAWS, Codes, Interval, percentile_interval, resampled_sums

Floats = npt.NDArray[np.float64]
Vector = Floats
"""Shape (1 + seeds + draws,): a quantity over all seeds, for each seed, and for each resample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A score or a difference of scores as a fraction, with its error."""

    value: float
    interval: Interval
    seed_sd: float | None = None
    """Standard deviation over seeds; None for one seed. The interval is of the mean over seeds, seeds fixed."""

    def exceeds(self, k: float) -> bool:
        """Return whether it is above zero by more than k standard errors."""
        if self.interval.se is None:
            return self.interval.method == "constant" and self.value > 0
        return self.value > k * self.interval.se


@dataclass(slots=True, kw_only=True)
class Means:
    """Collects columns of item scores and resamples them together.

    Columns of one block share their draws: those of all languages in a parallel task, else those of one language. In a
    resample, as many draws as the block has are taken with replacement, and each column's mean is the ratio of its sum
    to its number of items (Davison and Hinkley 1997, section 2.4).
    """

    seeds: int
    seed: int
    """The seed of the draws."""
    draws: int = DRAWS
    _blocks: dict[str, list[tuple[Any, Codes, Floats]]] = field(default_factory=dict)

    def add(self, name: Any, block: str, codes: Codes, scores: Floats) -> None:
        """Add a column: the draws of its items, shape (n,), and their scores, shape (seeds, n), at least one item."""
        self._blocks.setdefault(block, []).append((name, codes, scores))

    def vectors(self) -> dict[Any, Vector]:
        """Return the means of every column by name."""
        means: dict[Any, Vector] = {}
        for number, columns in enumerate(self._blocks.values()):
            means |= self._resampled(columns, self.seed + number)
        return means

    def _resampled(self, columns: Sequence[tuple[Any, Codes, Floats]], seed: int) -> dict[Any, Vector]:
        every = np.unique(np.concatenate([codes for _, codes, _ in columns]))
        groups = len(every)
        sums = np.empty((groups, 2 * len(columns)))
        for index, (_, codes, scores) in enumerate(columns):
            rows = np.searchsorted(every, codes)
            sums[:, 2 * index] = np.bincount(rows, weights=scores.mean(axis=0), minlength=groups)
            sums[:, 2 * index + 1] = np.bincount(rows, minlength=groups)
        drawn = resampled_sums(sums, draws=self.draws, seed=seed)
        with np.errstate(invalid="ignore"):
            replicates = drawn[:, 0::2] / drawn[:, 1::2]
        return {
            name: np.concatenate([[scores.mean()], scores.mean(axis=1), replicates[:, index]])
            for index, (name, _, scores) in enumerate(columns)
        }

    def estimate(self, vector: Vector, groups: int, items: int, *, reflected: bool = False) -> Estimate:
        """Return a quantity with the interval of its resamples.

        Args:
            vector: The vector of the quantity.
            groups: The number of draws behind it.
            items: The number of items; equal to the draws if no items were drawn together.
            reflected: Whether it is the basic interval, 2 value - quantiles, not the percentile one (Davison and
                Hinkley 1997, section 5.2). The larger of two noisy scores is too large, and in resamples too large
                twice: where ZS and TT are equal in 14 languages, the percentile interval of the mean delta covers it
                in 37 of 100 cases, the basic one in 85; 1 point apart, both cover it in 93 or 94.
        """
        by_seed, replicates = vector[1 : 1 + self.seeds], vector[1 + self.seeds :]
        if groups < 2:
            interval = Interval(method="one cluster")
        elif np.ptp(replicates) < 1e-12:
            interval = Interval(method="constant")
        else:
            method = "paired bootstrap" if groups == items else "paired cluster bootstrap"
            if reflected:
                replicates, method = 2 * vector[0] - replicates, f"{method}, basic"
            interval = percentile_interval(replicates, method=method, groups=groups, seed=self.seed)
        spread = float(by_seed.std(ddof=1)) if self.seeds > 1 else None
        return Estimate(value=float(vector[0]), interval=interval, seed_sd=spread)
