"""Intervals of means over languages, of differences between languages, and of suites whose tasks share items.

In a parallel task an item's translations are drawn together, so that what makes the item hard counts once. Several
seeds of a model answer the same items: the items' part is that of item scores averaged over seeds, to which the
spread over seeds is added. The differences between languages come from the same items and resamples.

For suites and categories, scores are linearised: to first order, a score varies by the sum of what its items contribute
(the influence values of Davison and Hinkley 1997, section 2.7.2). The contributions of the same draws of items to two
tasks give their correlation. For means of items the linearisation is exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from harness.errors import HarnessError
from harness.metrics.metric import Metric
from harness.scores.aggregation import Correlations, aggregate_suites, cells_of_row, group_cells, interval_of
from harness.statistics import (
    DRAWS,
    ClusterCodes,
    Codes,
    Contrast,
    Interval,
    cluster_sums,
    draw_codes,
    evaluated,
    independent_mean,
    mean_of_codes,
    over_seeds,
    percentile_interval,
    resampled_sums,
    seed_of,
    stratified_mean,
)
from harness.statistics.bootstrap import Statistic, influence_values
from harness.statistics.contrast import (
    common_variance,
    drawn_contrasts,
    independent_contrasts,
    no_common,
    paired_contrasts,
)
from harness.statistics.interval import Floats, Integers, linked_codes, score_correlations
from harness.storage.records import read_ids, read_scores
from harness.storage.results import (
    CellResult,
    Difference,
    RunResults,
    SuiteSummary,
    TaskScore,
    TaskSummary,
    Value,
)
from harness.table import NamedTable

Contrasts = Callable[[Floats], Sequence[Contrast]]
"""From weights of shape (m, languages) to m contrasts."""
Locate = Callable[[CellResult], Path]
"""From a finished cell to the file of its records."""
LONG_ID = 16
"""Ids of so many characters name the same item wherever they occur; shorter ones, such as row numbers, do not."""


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
        item_sets = [read_language_items(*pair, score.metric, locate) for pair in by_language.items()]
        languages = [items for items in item_sets if isinstance(items, LanguageItems)]
        if len(languages) < len(item_sets):
            reason = next(failure for failure in item_sets if isinstance(failure, str))
            with_intervals.append(_with(score, Interval(method=reason).to_json()))
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
    means = (fmean(cell.metrics[metric].value for cell in own) for own in by_language.values())
    return np.array([[*means]])


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
            codes, together = _codes(languages, linked.unpaired), np.concatenate(means)
            by_seed = np.concatenate([language.scores for language in languages], axis=1)
            mean, items = (
                stratified_mean(together, strata, codes),
                by_seed if len(values) > 1 else together[None],
            )
            return mean, partial(paired_contrasts, items, strata, codes)
        pairs = zip(means, languages, strict=True)
        intervals = [mean_of_codes(mean, _codes([language])) for mean, language in pairs]
    else:
        statistic, names = count_statistic(metrics, score.metric), (score.task, score.metric)
        if statistic is None:
            intervals = [Interval(method="the metric is not at hand")] * len(languages)
        elif linked is not None:
            drawn, interval = _drawn(languages, statistic, names, linked.unpaired)
            mean = _percentile(drawn, interval)
            return mean, partial(drawn_contrasts, values, drawn, interval, common=common)
        else:
            intervals = [_percentile(*_drawn([language], statistic, names)) for language in languages]
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
        return None, Interval(method="one cluster")
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
    means = [seed_scores.mean(axis=1) for seed_scores in np.split(scores, ends, axis=1)]
    by_language = np.stack(means, axis=1)
    method = "bootstrap" if groups == len(codes) else "cluster bootstrap"
    return by_language, Interval(method=method, groups=groups, seed=seed)


def _percentile(replicates: Floats | None, drawn: Interval) -> Interval:
    """Return the interval of the mean over languages of replicates of shape (draws, languages)."""
    if replicates is None:
        return drawn
    means, method = replicates.mean(axis=1), str(drawn.method)
    return percentile_interval(means, method=method, groups=drawn.groups, seed=drawn.seed or 0)


def _codes(
    languages: Sequence[LanguageItems], unpaired: Collection[str] = (), *, linked: bool = True
) -> Codes:
    item_keys = [(items.language, items.ids, items.clusters) for items in languages]
    return draw_codes(item_keys, linked=linked and len(languages) > 1, unpaired=unpaired)


def language_differences(score: TaskScore, source: str | None, contrasts: Contrasts) -> dict[str, Any]:
    """Return the fields of a task's score that compare its languages; nothing for one language.

    Args:
        score: The mean over languages.
        source: The language that the others are transferred to.
        contrasts: Estimates weighted sums of the languages, in the order of ``by_language``.
    """
    codes = list(score.by_language)
    unit: Floats = np.eye(len(codes))
    fields: dict[str, Any] = {}
    if score.seeds > 1:
        fields["over_seeds"] = dict(zip(codes, map(_value, contrasts(unit)), strict=True))
    if len(codes) < 2:
        return fields
    from_others = contrasts(unit - (1 - unit) / (len(codes) - 1))
    fields["from_others"] = dict(zip(codes, map(_difference, from_others), strict=True))
    if source in codes:
        fields["transfer_gap_interval"] = fields["from_others"][source]
        at = codes.index(source)
        further = [code for code in codes if code != source]
        against = contrasts(np.delete(unit, at, axis=0) - unit[at])
        fields["from_source"] = dict(zip(further, map(_difference, against), strict=True))
    return fields


def _value(contrast: Contrast) -> Value:
    interval = contrast.interval.to_json()
    ends = interval["ci"] and (max(0.0, interval["ci"][0]), interval["ci"][1])
    return Value(value=contrast.value, **{**interval, "ci": ends})


def _difference(contrast: Contrast) -> Difference:
    return Difference(value=contrast.value, **contrast.interval.to_json(), p=contrast.p)


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageItems:
    """The items of one language that several systems, or several seeds of one, have answered, under one metric."""

    language: str
    ids: Sequence[str]
    clusters: Sequence[str | None]
    scores: Floats
    """Shape (seeds, n), or (seeds, n, k) for counts; systems in the place of seeds where these are compared."""


def read_language_items(
    language: str, cells: Sequence[CellResult], metric: str, locate: Locate
) -> LanguageItems | str:
    """Return the items of one language by all seeds, or why they cannot be used."""
    keys: list[tuple[str, str | None]] = []
    by_seed: list[list[Any]] = []
    for path in map(locate, cells):
        if not path.is_file():
            return "records are missing"
        items: list[tuple[str, str | None]] = []
        scores: list[Any] = []
        for batch in read_scores(path):
            items += zip(batch.ids, batch.clusters, strict=True)
            scores += [item_scores.get(metric) for item_scores in batch.scores]
        if None in scores or not scores:
            return "no item scores"
        if by_seed and items != keys:
            return "items differ between seeds"
        keys = items
        by_seed.append(scores)
    ids, clusters = zip(*keys, strict=True)
    return LanguageItems(language=language, ids=ids, clusters=clusters, scores=np.array(by_seed))


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


def task_correlations(
    rows: Sequence[TaskScore],
    *,
    cells: Sequence[CellResult],
    tasks: Mapping[str, TaskSummary],
    locate: Locate,
    metrics: NamedTable[Metric],
) -> Correlations:
    """Return the correlations of the scores of tasks that share items, by pairs of tasks in the order of the rows.

    Two tasks share the items of a language that have the same data and id, or the same long id. Pairs without shared
    items, or whose records do not say which these are, are not in the result.

    Args:
        rows: The headline scores of the tasks of a suite; a task's score is their mean.
        cells: Those of the run.
        tasks: Summaries of the tasks.
        locate: Finds the records of a cell.
        metrics: The registry's, for set-level metrics.
    """
    groups = group_cells(cells)
    of_rows = [cells_of_row(row, groups) for row in rows]
    sharing = _sharing(zip((row.task for row in rows), of_rows, strict=True), locate)
    contributions: dict[str, list[_Contributions]] = defaultdict(list)
    unusable = set()
    for row, by_language in zip(rows, of_rows, strict=True):
        if any(row.task in pair for pair in sharing):
            for language, seed_cells in by_language.items():
                items = read_language_items(language, seed_cells, row.metric, locate)
                values = (
                    None
                    if isinstance(items, str)
                    else item_contributions(items.scores.mean(axis=0), row.metric, metrics)
                )
                if isinstance(items, str) or values is None:
                    unusable.add(row.task)
                    break
                contribution = _Contributions(
                    items=items, task=tasks[row.task], cell=seed_cells[0], values=values / len(by_language)
                )
                contributions[row.task].append(contribution)
    return _correlations(
        {task: per_language for task, per_language in contributions.items() if task not in unusable}, sharing
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contributions:
    """Contributions of the items of a language to the score of a task."""

    items: LanguageItems
    task: TaskSummary
    cell: CellResult
    values: Floats
    """Shape (n,)."""


def _sharing(
    rows: Iterator[tuple[str, Mapping[str, Sequence[CellResult]]]], locate: Locate
) -> list[tuple[str, str]]:
    """Return the pairs of tasks that share items of some language."""
    names: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for task, by_language in rows:
        for language, seed_cells in by_language.items():
            if not names[task][language] and (path := locate(seed_cells[0])).is_file():
                names[task][language] = {
                    _data(seed_cells[0]),
                    *(name for name in read_ids(path) if _is_long(name)),
                }
    return [
        (first, second)
        for first, second in combinations(names, 2)
        if any(not names[first][code].isdisjoint(names[second][code]) for code in [*names[first]])
    ]


def _is_long(identifier: str) -> bool:
    return len(identifier) >= LONG_ID


def _data(cell: CellResult) -> str:
    """Return a key that is the same for two cells with the same data."""
    return str(cell.data.get("digest") or f"{cell.task} {cell.language}")


def _correlations(
    by_task: Mapping[str, Sequence[_Contributions]], sharing: Sequence[tuple[str, str]]
) -> Correlations:
    pairs = [pair for pair in sharing if pair[0] in by_task and pair[1] in by_task]
    if not pairs:
        return {}
    codes = _draws([contribution for members in by_task.values() for contribution in members])
    values = [
        np.concatenate([contribution.values for contribution in members]) for members in by_task.values()
    ]
    index_of = {task: index for index, task in enumerate(by_task)}
    matrix = score_correlations(values, np.split(codes, np.cumsum([len(column) for column in values])[:-1]))
    return {(first, second): float(matrix[index_of[first], index_of[second]]) for first, second in pairs}


def _draws(contributions: Sequence[_Contributions]) -> Integers:
    """Return the number of every item's draw: shared items, translations and items of a cluster are one."""
    items, translations, clusters = ClusterCodes(), ClusterCodes(), ClusterCodes()
    for contribution in contributions:
        ids, language = contribution.items.ids, contribution.items.language
        task, data = contribution.task, _data(contribution.cell)
        items.add([f"{language if _is_long(name) else data} {name}" for name in ids])
        linked = task.parallel and language not in task.unpaired
        translations.add([f"{contribution.cell.task} {name}" if linked else None for name in ids])
        clusters.add([None if key is None else f"{data} {key}" for key in contribution.items.clusters])
    return linked_codes(items.codes(), translations.codes(), clusters.codes())
