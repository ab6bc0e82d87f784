"""Intervals of means over languages that need the items: those of parallel tasks, and of several seeds.

In a parallel task an item's translations are drawn together, so that what makes the item hard counts once. Several
seeds of a model answer the same items: their mean is that of item scores averaged over seeds, and how much seeds
differ is reported apart (``seed_sd``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.errors import HarnessError
from harness.metrics.aggregation import aggregate_suites, cells_of_row
from harness.metrics.metric import Metric
from harness.statistics import (
    DRAWS,
    Codes,
    Interval,
    Statistic,
    cluster_sums,
    draw_codes,
    evaluated,
    independent_mean,
    mean_of_codes,
    percentile_interval,
    resampled_sums,
    seed_of,
    stratified_mean,
)
from harness.storage.records import read_scores
from harness.storage.results import CellResult, RunResults, SuiteSummary, TaskScore, TaskSummary
from harness.table import Table

__all__ = ["add_task_intervals", "task_intervals"]

Locate = Callable[[CellResult], Path]
"""From a finished cell to the file of its records."""
Floats = npt.NDArray[np.float64]


def add_task_intervals(
    results: RunResults,
    tasks: Mapping[str, TaskSummary],
    suites: Sequence[SuiteSummary],
    locate: Locate,
    metrics: Table[Metric],
) -> RunResults:
    """Return results whose scores of tasks and suites have all intervals that follow from the records.

    Args:
        results: Its cells have their records on disk.
        tasks: Summaries of the tasks.
        suites: Summaries of the suites that were asked for.
        locate: Finds the records of a cell.
        metrics: The registry's, for set-level metrics.
    """
    scores = task_intervals(results.tasks, results.cells, tasks, locate, metrics)
    return results.changed(tasks=scores, suites=aggregate_suites(scores, suites))


def task_intervals(
    scores: Sequence[TaskScore],
    cells: Sequence[CellResult],
    tasks: Mapping[str, TaskSummary],
    locate: Locate,
    metrics: Table[Metric],
) -> list[TaskScore]:
    """Return the scores of `aggregate_tasks` with the intervals that it left open."""
    found = []
    for score in scores:
        by_language, task = cells_of_row(score, cells), tasks[score.task]
        linked = task.parallel and len(by_language) > 1
        if not linked and all(len(own) == 1 for own in by_language.values()):
            found.append(score)
            continue
        parts = [_read(language, own, score.metric, locate) for language, own in by_language.items()]
        known = [part for part in parts if isinstance(part, _Part)]
        if len(known) < len(parts):
            reason = next(part for part in parts if isinstance(part, str))
            interval = Interval(se=None, low=None, high=None, method=reason)
        else:
            interval = _interval(score, known, metrics, linked=linked, unpaired=task.unpaired)
        found.append(TaskScore.model_validate({**score.to_json(), **interval.to_json()}))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The items of one language."""

    language: str
    ids: Sequence[str]
    clusters: Sequence[str | None]
    scores: Floats
    """Shape (seeds, n), or (seeds, n, k) for counts."""


def _read(language: str, cells: Sequence[CellResult], metric: str, locate: Locate) -> _Part | str:
    """Return the items of one language by all seeds, or why they cannot be used."""
    found = []
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
            scores += [own.get(metric) for own in batch.scores]
        if None in scores or not scores:
            return "no item scores"
        found.append((ids, clusters, scores))
    if any(own[:2] != found[0][:2] for own in found):
        return "items differ between seeds"
    ids, clusters, _ = found[0]
    return _Part(language=language, ids=ids, clusters=clusters, scores=np.array([own[2] for own in found]))


def _interval(
    score: TaskScore,
    parts: Sequence[_Part],
    metrics: Table[Metric],
    *,
    linked: bool,
    unpaired: Collection[str] = (),
) -> Interval:
    if parts[0].scores.ndim == 2:
        means = [part.scores.mean(axis=0) for part in parts]
        if linked:
            strata = np.repeat(np.arange(len(parts)), [len(part.ids) for part in parts])
            return stratified_mean(np.concatenate(means), strata, _codes(parts, unpaired))
        own = [mean_of_codes(mean, _codes([part])) for mean, part in zip(means, parts, strict=True)]
    else:
        try:
            statistic = metrics.get(score.metric).from_counts
        except HarnessError:
            statistic = None
        if statistic is None:
            return Interval(se=None, low=None, high=None, method="the metric is not at hand")
        names = (score.task, score.metric)
        if linked:
            return _bootstrap(parts, statistic, names, unpaired)
        own = [_bootstrap([part], statistic, names) for part in parts]
    return own[0] if len(own) == 1 else independent_mean(own, score.value or 0.0)


def _bootstrap(
    parts: Sequence[_Part], statistic: Statistic, names: Sequence[str], unpaired: Collection[str] = ()
) -> Interval:
    """Return the interval of the mean over languages and seeds of a set-level metric, items drawn jointly."""
    codes = _codes(parts, unpaired)
    groups = int(codes.max()) + 1
    if groups < 2:
        return Interval(se=None, low=None, high=None, method="one cluster")
    seed = seed_of(*names, *(part.language for part in parts))
    sums, start = [], 0
    for part in parts:
        own = codes[start : start + len(part.ids)]
        start += len(own)
        sums += [cluster_sums(counts, own, groups) for counts in part.scores]
    k = sums[0].shape[1]
    drawn = resampled_sums(np.concatenate(sums, axis=1), seed=seed).reshape(DRAWS, -1, k)
    scores = evaluated(statistic, drawn)
    ends = np.cumsum([len(part.scores) for part in parts])[:-1]
    by_language = [part.mean(axis=1) for part in np.split(scores, ends, axis=1)]
    method = "bootstrap" if groups == len(codes) else "cluster bootstrap"
    return percentile_interval(np.mean(by_language, axis=0), method=method, groups=groups, seed=seed)


def _codes(parts: Sequence[_Part], unpaired: Collection[str] = ()) -> Codes:
    named = [(part.language, part.ids, part.clusters) for part in parts]
    return draw_codes(named, linked=len(parts) > 1, unpaired=unpaired)
