"""Intervals of means over languages and of differences between languages, from the items where these are needed.

In a parallel task an item's translations are drawn together, so that what makes the item hard counts once. Several
seeds of a model answer the same items: the items' part is that of item scores averaged over seeds, to which the
spread over seeds is added. The differences between languages come from the same items and resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.metrics.metric import Metric
from harness.scores.aggregation import aggregate_suites, cells_of_row, group_cells, interval_of
from harness.scores.language_differences import Contrasts, language_differences
from harness.scores.language_items import (
    LanguageItems,
    Locate,
    count_statistic,
    item_contributions,
    read_language_items,
)
from harness.scores.shared_items import task_correlations
from harness.statistics import (
    DRAWS,
    Codes,
    Interval,
    Statistic,
    cluster_sums,
    common_variance,
    draw_codes,
    drawn_contrasts,
    evaluated,
    independent_contrasts,
    independent_mean,
    mean_of_codes,
    no_common,
    over_seeds,
    paired_contrasts,
    percentile_interval,
    resampled_sums,
    seed_of,
    stratified_mean,
)
from harness.storage.results import CellResult, RunResults, SuiteSummary, TaskScore, TaskSummary
from harness.table import Table

__all__ = ["add_task_intervals", "task_intervals"]

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
    correlate = partial(task_correlations, cells=results.cells, tasks=tasks, locate=locate, metrics=metrics)
    return results.changed(tasks=scores, suites=aggregate_suites(scores, suites, correlate))


def task_intervals(
    scores: Sequence[TaskScore],
    cells: Sequence[CellResult],
    tasks: Mapping[str, TaskSummary],
    locate: Locate,
    metrics: Table[Metric],
) -> list[TaskScore]:
    """Return the scores of `aggregate_tasks` with the intervals that it left open, and those of its differences."""
    found, groups = [], group_cells(cells)
    for score in scores:
        by_language, task = cells_of_row(score, groups), tasks[score.task]
        linked = task.parallel and len(by_language) > 1
        kept = [interval_of(own[0].metrics[score.metric]) for own in by_language.values()]
        values = _seed_values(by_language, score.metric)
        if not linked and all(len(own) == 1 for own in by_language.values()):
            apart = partial(independent_contrasts, kept, values)
            found.append(_with(score, language_differences(score, task.source, apart)))
            continue
        parts = [
            read_language_items(language, own, score.metric, locate) for language, own in by_language.items()
        ]
        known = [part for part in parts if isinstance(part, LanguageItems)]
        if len(known) < len(parts):
            reason = next(part for part in parts if isinstance(part, str))
            found.append(_with(score, _without(reason).to_json()))
            continue
        common = _common(score, known, len(values), metrics, task if linked else None)
        mean, contrasts = _estimates(score, known, values, metrics, common, task if linked else None)
        equal: Floats = np.full(len(known), 1 / len(known))
        mean = over_seeds(mean, values.mean(axis=1), common(equal))
        differences = language_differences(score, task.source, contrasts)
        found.append(_with(score, mean.to_json() | differences))
    return found


def _with(score: TaskScore, fields: Mapping[str, Any]) -> TaskScore:
    return TaskScore.model_validate({**score.to_json(), **fields})


def _seed_values(by_language: Mapping[str, Sequence[CellResult]], metric: str) -> Floats:
    """Return the scores, shape (seeds, languages); their means in one row where languages have other seeds."""
    if len({tuple(cell.seed for cell in own) for own in by_language.values()}) == 1:
        rows = [[cell.metrics[metric].value for cell in own] for own in by_language.values()]
        return np.array(rows).T
    return np.array([[fmean(cell.metrics[metric].value for cell in own) for own in by_language.values()]])


def _estimates(
    score: TaskScore,
    parts: Sequence[LanguageItems],
    values: Floats,
    metrics: Table[Metric],
    common: Callable[[Floats], float],
    linked: TaskSummary | None,
) -> tuple[Interval, Contrasts]:
    """Return the interval of the mean over languages for the seeds that were run, and what estimates differences.

    Args:
        score: The mean.
        parts: The items of its languages.
        values: The scores, shape (seeds, languages).
        metrics: The registry's.
        common: From weights of the languages to what seeds and items have in common.
        linked: The task, where translations of an item are drawn together.
    """
    if parts[0].scores.ndim == 2:
        means = [part.scores.mean(axis=0) for part in parts]
        if linked is not None:
            strata = np.repeat(np.arange(len(parts)), [len(part.ids) for part in parts])
            codes = _codes(parts, linked.unpaired)
            by_seed = [np.concatenate(row) for row in zip(*(part.scores for part in parts), strict=True)]
            items = np.array(by_seed) if len(values) > 1 else np.concatenate(means)[None]
            mean = stratified_mean(np.concatenate(means), strata, codes)
            return mean, partial(paired_contrasts, items, strata, codes)
        own = [mean_of_codes(mean, _codes([part])) for mean, part in zip(means, parts, strict=True)]
    else:
        statistic = count_statistic(metrics, score.metric)
        if statistic is None:
            own = [_without("the metric is not at hand")] * len(parts)
        elif linked is not None:
            drawn, interval = _drawn(parts, statistic, (score.task, score.metric), linked.unpaired)
            mean = interval if drawn is None else _percentile(drawn.mean(axis=1), interval)
            return mean, partial(drawn_contrasts, values, drawn, interval, common=common)
        else:
            own = [_alone(part, statistic, (score.task, score.metric)) for part in parts]
    mean = own[0] if len(own) == 1 else independent_mean(own, score.value)
    return mean, partial(independent_contrasts, own, values, common=common)


def _common(
    score: TaskScore,
    parts: Sequence[LanguageItems],
    seeds: int,
    metrics: Table[Metric],
    linked: TaskSummary | None,
) -> Callable[[Floats], float]:
    """Return what gives the common variance of seeds and items from weights of the languages; 0 for one seed."""
    if seeds < 2:
        return no_common
    by_language = []
    for part in parts:
        own = [item_contributions(scores, score.metric, metrics) for scores in part.scores]
        by_language.append([values for values in own if values is not None])
    if any(len(own) < seeds for own in by_language):
        return no_common
    contributions = np.concatenate([np.array(own) for own in by_language], axis=1)
    strata = np.repeat(np.arange(len(parts)), [len(part.ids) for part in parts])
    codes = _codes(parts, linked.unpaired) if linked is not None else _codes(parts, linked=False)
    return lambda weights: common_variance(contributions * weights[strata], codes)


def _alone(part: LanguageItems, statistic: Statistic, names: Sequence[str]) -> Interval:
    drawn, interval = _drawn([part], statistic, names)
    return interval if drawn is None else _percentile(drawn[:, 0], interval)


def _drawn(
    parts: Sequence[LanguageItems], statistic: Statistic, names: Sequence[str], unpaired: Collection[str] = ()
) -> tuple[Floats | None, Interval]:
    """Return a set-level metric in resamples of all languages' items together, shape (draws, languages).

    It is averaged over seeds. The interval has the method, the groups and the seed of the resamples, or why there are
    none.
    """
    codes = _codes(parts, unpaired)
    groups = int(codes.max()) + 1
    if groups < 2:
        return None, _without("one cluster")
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
    by_language = np.stack([part.mean(axis=1) for part in np.split(scores, ends, axis=1)], axis=1)
    method = "bootstrap" if groups == len(codes) else "cluster bootstrap"
    return by_language, replace(_without(method), groups=groups, seed=seed)


def _percentile(replicates: Floats, drawn: Interval) -> Interval:
    return percentile_interval(
        replicates, method=str(drawn.method), groups=drawn.groups, seed=drawn.seed or 0
    )


def _without(reason: str) -> Interval:
    return Interval(se=None, low=None, high=None, method=reason)


def _codes(parts: Sequence[LanguageItems], unpaired: Collection[str] = (), *, linked: bool = True) -> Codes:
    named = [(part.language, part.ids, part.clusters) for part in parts]
    return draw_codes(named, linked=linked and len(parts) > 1, unpaired=unpaired)
