"""From cells to task scores: unweighted means over languages, by family and script, and the transfer gap.

XTREME-R scores a task by the unweighted mean over its test languages, English included where it is one of them
(Ruder et al. 2021, Tables 15-24). The transfer gap is the source language's score minus the mean of the others
(section 4.2). A mean over fewer languages than the task has is marked: it never passes as the task's score.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from harness.statistics import Interval, independent_mean
from harness.storage.results import (
    CellResult,
    GroupValue,
    TaskScore,
    TaskSummary,
    Value,
)
from harness.table import grouped

Group = tuple[str, str | None, str | None, str]
CellGroups = Mapping[Group, Sequence[CellResult]]


def aggregate_tasks(cells: Iterable[CellResult], tasks: Mapping[str, TaskSummary]) -> list[TaskScore]:
    """Return one score for every task, protocol, method, view and metric, in the order of the cells.

    Seeds of one language are averaged first.
    """
    cells = list(cells)
    missing = grouped((cell.task, cell.language) for cell in cells if not cell.is_scored)
    scores = []
    for (task, protocol, method, view), members in group_cells(cells).items():
        lost = sorted({*missing.get(task, ())} - {cell.language for cell in members})
        for metric in tasks[task].metrics:
            row = _row(members, metric, tasks[task])
            if row is not None:
                identity = {"task": task, "protocol": protocol, "method": method, "view": json.loads(view)}
                scores.append(TaskScore(**identity, **row, missing=lost))
    return scores


def cells_of_row(row: TaskScore, groups: CellGroups) -> dict[str, list[CellResult]]:
    """Return the cells whose mean a score of `aggregate_tasks` is, by language: one for each seed.

    Args:
        row: The score.
        groups: All cells, from `group_cells`.
    """
    cells = groups.get(_group(row), ())
    return grouped((cell.language, cell) for cell in cells if row.metric in cell.metrics)


def group_cells(cells: Iterable[CellResult]) -> CellGroups:
    """Return the cells with scores by task, protocol, method and view."""
    return grouped((_group(cell), cell) for cell in cells if cell.is_scored)


def _group(item: CellResult | TaskScore) -> Group:
    return (item.task, item.protocol, item.method, json.dumps(item.view, sort_keys=True))


def _row(cells: Sequence[CellResult], metric: str, task: TaskSummary) -> dict[str, Any] | None:
    scored = (cell for cell in cells if metric in cell.metrics)
    by_language = grouped((cell.language, cell.metrics[metric].value) for cell in scored)
    if not by_language:
        return None
    means = {language: fmean(values) for language, values in by_language.items()}
    counts = {cell.language: cell.n for cell in cells}
    human = task.human.get(metric)
    published = task.published_languages or list(means)
    is_complete = set(published) <= set(means)
    target_values = [value for language, value in means.items() if language != task.source]
    gap = means[task.source] - fmean(target_values) if task.source in means and target_values else None
    return {
        "fit": sorted({str(cell.fit) for cell in cells}),
        "metric": metric,
        "headline": metric in task.headline,
        "value": fmean(means.values()),
        **_interval(cells, metric, fmean(means.values()), linked=task.parallel),
        "micro": _weighted([(value, counts[language]) for language, value in means.items()]),
        "languages": len(means),
        "by_language": means,
        "by_family": _by(means, {language: pair[0] for language, pair in task.languages.items()}),
        "by_script": _by(means, {language: pair[1] for language, pair in task.languages.items()}),
        "transfer_gap": gap,
        "human_gap": None
        if human is None or not is_complete
        else human - fmean(means[code] for code in published),
        **_by_group(cells, metric, task),
        "seeds": max(len(values) for values in by_language.values()),
        "seed_sd": _seed_spread(by_language),
    }


def _interval(cells: Sequence[CellResult], metric: str, value: float, *, linked: bool) -> dict[str, Any]:
    """Return the interval of a mean over languages as far as it follows from the cells' own intervals.

    Items of parallel languages are drawn jointly, and those of several seeds are the same: both need the records, and
    are left to `harness.scores.task_intervals`.
    """
    scored = [cell for cell in cells if metric in cell.metrics]
    intervals = [interval_of(cell.metrics[metric]) for cell in scored]
    if len(scored) == 1:
        return intervals[0].to_json()
    if linked or len(scored) > len({cell.language for cell in scored}):
        return Interval().to_json()
    return independent_mean(intervals, value).to_json()


def interval_of(kept: Value) -> Interval:
    """Return the uncertainty that is kept with a score."""
    low, high = kept.ci or (None, None)
    return Interval(
        se=kept.se,
        low=low,
        high=high,
        method=kept.ci_method,
        groups=kept.clusters,
        draws=kept.draws,
        seed=kept.seed,
    )


def _by(means: Mapping[str, float], groups: Mapping[str, str]) -> dict[str, float]:
    members = grouped((groups[language], value) for language, value in means.items())
    return {group: fmean(values) for group, values in sorted(members.items())}


def _weighted(values: Sequence[tuple[float, int]]) -> float | None:
    """Return the mean over all items (the micro average), or None where the numbers of items are not known."""
    total = sum(count for _, count in values)
    return sum(value * count for value, count in values) / total if total else None


def _by_group(cells: Sequence[CellResult], metric: str, task: TaskSummary) -> dict[str, Any]:
    """Return the matrix of a metric that is given by group, language of the cell x group, and its two halves.

    `same_language` takes the fields whose group is the cell's own language, `cross_language` the others, each as
    the mean of its fields (macro) and over all their observations (micro), as in XTREME-R's Table 14. Where no
    group is a language of the task, as with the tests of a checklist, there are no halves.
    """
    observed: dict[str, dict[str, list[GroupValue]]] = {}
    for cell in cells:
        for group, score in cell.metrics[metric].groups.items() if metric in cell.metrics else ():
            observed.setdefault(cell.language, {}).setdefault(group, []).append(score)
    if not observed:
        return {}
    matrix = {
        language: {group: _field(scores) for group, scores in row.items()}
        for language, row in observed.items()
    }
    fields = [(language == group, score) for language, row in matrix.items() for group, score in row.items()]
    of_languages = any(group in task.languages for row in matrix.values() for group in row)
    halves = {
        "same_language": [score for is_own, score in fields if is_own and of_languages],
        "cross_language": [score for is_own, score in fields if not is_own and of_languages],
    }
    return {"matrix": matrix, **{name: _half(half) for name, half in halves.items()}}


def _field(scores: Sequence[GroupValue]) -> GroupValue:
    """Return one field: the mean over seeds; the interval of one seed is not that of their mean."""
    value = fmean(score.value or 0.0 for score in scores)
    if len(scores) > 1 or "ci" not in scores[0].model_fields_set:
        return GroupValue(value=value, n=scores[0].n)
    only = scores[0]
    return GroupValue(value=value, n=only.n, se=only.se, ci=only.ci, ci_method=only.ci_method)


def _half(fields: Sequence[GroupValue]) -> dict[str, float | None] | None:
    if not fields:
        return None
    pairs = [(field.value or 0.0, field.n) for field in fields]
    return {"macro": fmean(value for value, _ in pairs), "micro": _weighted(pairs)}


def _seed_spread(by_language: Mapping[str, Sequence[float]]) -> float | None:
    """Return the standard deviation over seeds of the mean over languages, where all have the same seeds."""
    counts = {len(values) for values in by_language.values()}
    if counts == {1} or len(counts) > 1:
        return None
    return stdev(fmean(column) for column in zip(*by_language.values(), strict=True))
