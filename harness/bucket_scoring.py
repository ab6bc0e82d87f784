"""Scores of buckets with their uncertainty: of one system, and of two systems on the same items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from harness.statistics import mean_of_codes

if TYPE_CHECKING:
    from harness.bucket_metric import BucketMetric

__all__ = ["Block", "BucketScore", "Observations", "PairScore", "Split", "compare_splits", "score_splits"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
RESAMPLES: Final = 1_000
FLIPS: Final = 2_000
DRAWN_TOGETHER: Final = 1_000_000
"""Draws of clusters that are in memory at a time."""
LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """What one system did in the buckets of one attribute: an entry an item or, for spans, a span of either side."""

    items: Integers
    """The number of the item."""
    codes: Integers
    """The number of the bucket; -1 for none."""
    statistics: Floats
    """Shape (n, k)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One attribute of a block of items."""

    metric: BucketMetric
    buckets: int
    counts: Integers
    """Items, or gold spans, of every bucket."""
    systems: tuple[Observations, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Items that are scored together: those of a language, or of all languages of a task."""

    ids: Sequence[str]
    clusters: Integers
    """The number of every item's cluster: 0, 1, ... G - 1."""
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketScore:
    """The score of one bucket; what cannot be computed (no items, one cluster) is None."""

    n: int
    value: float | None
    se: float | None
    low: float | None
    high: float | None
    method: str | None
    examples: tuple[str, ...]
    """The worst items, worst first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairScore:
    """The scores of two systems in one bucket; the difference is the second minus the first."""

    n: int
    values: tuple[float | None, float | None]
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    wins: int
    """Items of the bucket in which the second system is better."""
    losses: int
    ties: int
    examples: tuple[str, ...]
    """The items that differ most, first those in which the second system is worse."""


def score_splits(block: Block, splits: Sequence[Split], *, examples: int) -> list[list[BucketScore]]:
    """Return the scores of every bucket of every split, for their first system.

    Means of items have the standard error and interval of `harness.statistics`, in which clusters count as one draw;
    set-level scores have those of a cluster bootstrap, one set of resamples for all splits.
    """
    resampled = _bootstrap(block, [split for split in splits if not split.metric.is_mean], system=0)
    found = []
    for split in splits:
        if split.metric.is_mean:
            found.append([_mean_score(block, split, code, examples) for code in range(split.buckets)])
        else:
            draws = next(resampled_parts := iter([resampled.pop(0)]))
            del resampled_parts
            found.append([_set_score(block, split, code, draws, examples) for code in range(split.buckets)])
    return found
