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
from harness.table import NamedTable

Floats = npt.NDArray[np.float64]


def add_task_intervals(
    results: RunResults,
    tasks: Mapping[str, TaskSummary],
    suites: Sequence[SuiteSummary],
    locate: Locate,
    metrics: NamedTable[Metric],
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
    metrics: NamedTable[Metric],
) -> list[TaskScore]:
    """Return the scores of `aggregate_tasks` with the intervals that it left open, and those of its differences."""
    with_intervals, groups = [], group_cells(cells)
    for score in scores:
        by_language, task = cells_of_row(score, groups), tasks[score.task]
        linked = task.parallel and len(by_language) > 1
        intervals = [interval_of(seed_cells[0].metrics[score.metric]) for seed_cells in by_language.values()]
        values = _seed_values(by_language, score.metric)
        if not linked and all(len(seed_cells) == 1 for seed_cells in by_language.values()):
            apart = partial(independent_contrasts, intervals, values)
            with_intervals.append(_with(score, language_differences(score, task.source, apart)))
            continue
        item_sets = [
            read_language_items(language, seed_cells, score.metric, locate)
            for language, seed_cells in by_language.items()
        ]
        languages = [items for items in item_sets if isinstance(items, LanguageItems)]
        if len(languages) < len(item_sets):
            reason = next(failure for failure in item_sets if isinstance(failure, str))
            with_intervals.append(_with(score, _without(reason).to_json()))
            continue
        common = _common(score, languages, len(values), metrics, task if linked else None)
        mean, contrasts = _estimates(score, languages, values, metrics, common, task if linked else None)
        equal: Floats = np.full(len(languages), 1 / len(languages))
        mean = over_seeds(mean, values.mean(axis=1), common(equal))
        differences = language_differences(score, task.source, contrasts)
        with_intervals.append(_with(score, mean.to_json() | differences))
    return with_intervals


def _with(score: TaskScore, fields: Mapping[str, Any]) -> TaskScore:
    return TaskScore.model_validate({**score.to_json(), **fields})


def _seed_values(by_language: Mapping[str, Sequence[CellResult]], metric: str) -> Floats:
    """Return the scores, shape (seeds, languages); their means in one row where languages have other seeds."""
    if len({tuple(cell.seed for cell in seed_cells) for seed_cells in by_language.values()}) == 1:
        rows = [[cell.metrics[metric].value for cell in seed_cells] for seed_cells in by_language.values()]
        return np.array(rows).T
    return np.array(
        [[fmean(cell.metrics[metric].value for cell in seed_cells) for seed_cells in by_language.values()]]
    )


def _estimates(
    score: TaskScore,
    languages: Sequence[LanguageItems],
    values: Floats,
    metrics: NamedTable[Metric],
    common: Callable[[Floats], float],
    linked: TaskSummary | None,
) -> tuple[Interval, Contrasts]:
    """Return the interval of the mean over languages for the seeds that were run, and what estimates differences.

    Args:
        score: The mean.
        languages: The items of its languages.
        values: The scores, shape (seeds, languages).
        metrics: The registry's.
        common: From weights of the languages to what seeds and items have in common.
        linked: The task, where translations of an item are drawn together.
    """
    if languages[0].scores.ndim == 2:
        means = [language.scores.mean(axis=0) for language in languages]
        if linked is not None:
            strata = np.repeat(np.arange(len(languages)), [len(language.ids) for language in languages])
            codes = _codes(languages, linked.unpaired)
            by_seed = [
                np.concatenate(row) for row in zip(*(language.scores for language in languages), strict=True)
            ]
            items = np.array(by_seed) if len(values) > 1 else np.concatenate(means)[None]
            mean = stratified_mean(np.concatenate(means), strata, codes)
            return mean, partial(paired_contrasts, items, strata, codes)
        intervals = [
            mean_of_codes(mean, _codes([language])) for mean, language in zip(means, languages, strict=True)
        ]
    else:
        statistic = count_statistic(metrics, score.metric)
        if statistic is None:
            intervals = [_without("the metric is not at hand")] * len(languages)
        elif linked is not None:
            drawn, interval = _drawn(languages, statistic, (score.task, score.metric), linked.unpaired)
            mean = interval if drawn is None else _percentile(drawn.mean(axis=1), interval)
            return mean, partial(drawn_contrasts, values, drawn, interval, common=common)
        else:
            intervals = [_alone(language, statistic, (score.task, score.metric)) for language in languages]
    mean = intervals[0] if len(intervals) == 1 else independent_mean(intervals, score.value)
    return mean, partial(independent_contrasts, intervals, values, common=common)


def _common(
    score: TaskScore,
    languages: Sequence[LanguageItems],
    seeds: int,
    metrics: NamedTable[Metric],
    linked: TaskSummary | None,
) -> Callable[[Floats], float]:
    """Return the function from weights of the languages to the common variance of seeds and items; 0 for one seed."""
    if seeds < 2:
        return no_common
    by_language = []
    for items in languages:
        by_seed = [item_contributions(scores, score.metric, metrics) for scores in items.scores]
        by_language.append([values for values in by_seed if values is not None])
    if any(len(by_seed) < seeds for by_seed in by_language):
        return no_common
    contributions = np.concatenate([np.array(by_seed) for by_seed in by_language], axis=1)
    strata = np.repeat(np.arange(len(languages)), [len(items.ids) for items in languages])
    codes = _codes(languages, linked.unpaired) if linked is not None else _codes(languages, linked=False)
    return lambda weights: common_variance(contributions * weights[strata], codes)


def _alone(items: LanguageItems, statistic: Statistic, names: Sequence[str]) -> Interval:
    drawn, interval = _drawn([items], statistic, names)
    return interval if drawn is None else _percentile(drawn[:, 0], interval)


def _drawn(
    languages: Sequence[LanguageItems],
    statistic: Statistic,
    names: Sequence[str],
    unpaired: Collection[str] = (),
) -> tuple[Floats | None, Interval]:
    """Return a set-level metric in resamples of all languages' items together, shape (draws, languages).

    It is averaged over seeds. The interval has the method, the groups and the seed of the resamples, or why there are
    none.
    """
    codes = _codes(languages, unpaired)
    groups = int(codes.max()) + 1
    if groups < 2:
        return None, _without("one cluster")
    seed = seed_of(*names, *(items.language for items in languages))
    sums, start = [], 0
    for items in languages:
        language_codes = codes[start : start + len(items.ids)]
        start += len(language_codes)
        sums += [cluster_sums(counts, language_codes, groups) for counts in items.scores]
    k = sums[0].shape[1]
    drawn = resampled_sums(np.concatenate(sums, axis=1), seed=seed).reshape(DRAWS, -1, k)
    scores = evaluated(statistic, drawn)
    ends = np.cumsum([len(items.scores) for items in languages])[:-1]
    by_language = np.stack(
        [seed_scores.mean(axis=1) for seed_scores in np.split(scores, ends, axis=1)], axis=1
    )
    method = "bootstrap" if groups == len(codes) else "cluster bootstrap"
    return by_language, replace(_without(method), groups=groups, seed=seed)


def _percentile(replicates: Floats, drawn: Interval) -> Interval:
    return percentile_interval(
        replicates, method=str(drawn.method), groups=drawn.groups, seed=drawn.seed or 0
    )


def _without(reason: str) -> Interval:
    return Interval(se=None, low=None, high=None, method=reason)


def _codes(
    languages: Sequence[LanguageItems], unpaired: Collection[str] = (), *, linked: bool = True
) -> Codes:
    item_keys = [(items.language, items.ids, items.clusters) for items in languages]
    return draw_codes(item_keys, linked=linked and len(languages) > 1, unpaired=unpaired)
