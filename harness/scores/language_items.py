"""The item scores of one language of a task, over all its seeds, as they are read from the records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.errors import HarnessError
from harness.metrics.metric import Metric
from harness.statistics import Statistic, influence_values
from harness.storage.records import read_scores
from harness.storage.results import CellResult
from harness.table import NamedTable

Locate = Callable[[CellResult], Path]
"""From a finished cell to the file of its records."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageItems:
    """The items of one language."""

    language: str
    ids: Sequence[str]
    clusters: Sequence[str | None]
    scores: Floats
    """Shape (seeds, n), or (seeds, n, k) for counts."""


def read_language_items(
    language: str, cells: Sequence[CellResult], metric: str, locate: Locate
) -> LanguageItems | str:
    """Return the items of one language by all seeds, or why they cannot be used."""
    by_seed = []
    for cell in cells:
        path = locate(cell)
        if not path.is_file():
            return "records are missing"
        ids: list[str] = []
        clusters: list[str | None] = []
        scores: list[Any] = []
        for batch in read_scores(path):
            ids += batch.ids
            clusters += batch.clusters
            scores += [item_scores.get(metric) for item_scores in batch.scores]
        if None in scores or not scores:
            return "no item scores"
        by_seed.append((ids, clusters, scores))
    if any(seed[:2] != by_seed[0][:2] for seed in by_seed):
        return "items differ between seeds"
    ids, clusters, _ = by_seed[0]
    return LanguageItems(
        language=language, ids=ids, clusters=clusters, scores=np.array([seed[2] for seed in by_seed])
    )


def count_statistic(metrics: NamedTable[Metric], name: str) -> Statistic | None:
    """Return the function from sums of counts to a set-level metric; None where the metric is not registered."""
    try:
        return metrics.get(name).from_counts
    except HarnessError:
        return None


def item_contributions(scores: Floats, metric: str, metrics: NamedTable[Metric]) -> Floats | None:
    """Return each item's contribution to a language's score, to first order; None for a metric that is not registered.

    Args:
        scores: Shape (n,), or (n, k) for counts.
        metric: Whose scores they are.
        metrics: The registry's.
    """
    if scores.ndim == 1:
        apart: Floats = (scores - scores.mean()) / len(scores)
        return apart
    statistic = count_statistic(metrics, metric)
    return None if statistic is None else influence_values(scores, statistic)
