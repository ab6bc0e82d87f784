"""From cells to task scores: unweighted means over languages, by family and script, and the transfer gap.

XTREME-R scores a task by the unweighted mean over its test languages, English included where it is one of them
(Ruder et al. 2021, Tables 15-24). The transfer gap is the source language's score minus the mean of the others
(section 4.2). A mean over fewer languages than the task has is marked: it never passes as the task's score.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np

from harness.scores.suites import Overall, overall
from harness.statistics import Interval, correlated_mean, independent_mean
from harness.storage.results import (
    CellResult,
    ExtendedScore,
    GroupValue,
    SuiteScore,
    SuiteSummary,
    SuiteValue,
    TaskScore,
    TaskSummary,
    Value,
)

Group = tuple[str, str | None, str | None, str]
CellGroups = Mapping[Group, Sequence[CellResult]]
Correlations = Mapping[tuple[str, str], float]
"""By two tasks: the correlation of their scores."""
Correlate = Callable[[Sequence[TaskScore]], Correlations]


def cell_value(cell: CellResult, metric: str) -> float | None:
    """Return the value of a metric in a cell, or None where the cell has no such metric."""
    score = cell.metrics.get(metric)
    return None if score is None else score.value


def aggregate_tasks(cells: Iterable[CellResult], tasks: Mapping[str, TaskSummary]) -> list[TaskScore]:
    """Return one score for every task, protocol, method, view and metric, in the order of the cells.

    Seeds of one language are averaged first.
    """
    cells = list(cells)
    missing: dict[str, set[str]] = {}
    for cell in cells:
        if not cell.is_scored:
            missing.setdefault(cell.task, set()).add(cell.language)
    scores = []
    for (task, protocol, method, view), members in group_cells(cells).items():
        lost = sorted(missing.get(task, set()) - {cell.language for cell in members})
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
    by_language: dict[str, list[CellResult]] = {}
    for cell in groups.get(_group(row), ()):
        if row.metric in cell.metrics:
            by_language.setdefault(cell.language, []).append(cell)
    return by_language


def group_cells(cells: Iterable[CellResult]) -> CellGroups:
    """Return the cells with scores by task, protocol, method and view."""
    groups: dict[Group, list[CellResult]] = {}
    for cell in cells:
        if cell.is_scored:
            groups.setdefault(_group(cell), []).append(cell)
    return groups


def _group(item: CellResult | TaskScore) -> Group:
    return (item.task, item.protocol, item.method, json.dumps(item.view, sort_keys=True))


def _row(cells: Sequence[CellResult], metric: str, task: TaskSummary) -> dict[str, Any] | None:
    by_language: dict[str, list[float]] = {}
    for cell in cells:
        value = cell_value(cell, metric)
        if value is not None:
            by_language.setdefault(cell.language, []).append(value)
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
        return Interval(se=None, low=None, high=None, method=None).to_json()
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
    members: dict[str, list[float]] = {}
    for language, value in means.items():
        members.setdefault(groups[language], []).append(value)
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


def aggregate_suites(
    rows: Iterable[TaskScore], suites: Iterable[SuiteSummary], correlate: Correlate = lambda _: {}
) -> list[SuiteScore]:
    """Return the overall scores of every suite, for its own protocol and for others in which no task is missing.

    A run without the suite's own protocol, as those of models that are only prompted, has the rows of its others.
    Views are never mixed: there is one row for each view that some task of the suite was run in. A task counts with
    its published languages; `extended` takes those that fragments added too. `tasks` says over how many of them: a
    suite is `complete` only where no language is missing either.

    Args:
        rows: Scores of tasks.
        suites: Summaries of the suites.
        correlate: From the scores that count in a suite to the correlations of the tasks that share items; the others
            are taken as independent.
    """
    rows = list(rows)
    scores = []
    for suite in suites:
        by_condition: dict[tuple[str | None, str], list[TaskScore]] = {}
        for row in rows:
            view = _suite_view(suite, row) if row.task in suite.tasks and _counts(suite, row) else None
            if view is not None:
                by_condition.setdefault((row.protocol, json.dumps(view)), []).append(row)
        protocols = {protocol for protocol, _ in by_condition}
        for (protocol, text), members in by_condition.items():
            score = _suite_score(suite, protocol, json.loads(text), members, correlate(members))
            # A variant that only some tasks have makes no suite of its own next to the usual one.
            is_own = protocol == suite.protocol or suite.protocol not in protocols
            is_usual = is_own and (text == "{}" or (protocol, "{}") not in by_condition)
            if is_usual or not score.missing:
                scores.append(score)
    return scores


def _counts(suite: SuiteSummary, row: TaskScore) -> bool:
    """Return whether the metric of a row is one whose mean is the task's score in the suite."""
    return row.metric in suite.headline(row.task, (row.metric,) if row.headline else ())


def _suite_view(suite: SuiteSummary, row: TaskScore) -> dict[str, str] | None:
    """Return the view of a row without what the suite fixes for its task; None for a row with other values of that."""
    view = dict(row.view)
    if any(view.pop(name, None) != value for name, value in suite.views.get(row.task, {}).items()):
        return None
    return view


def _suite_score(
    suite: SuiteSummary,
    protocol: str | None,
    view: dict[str, str],
    rows: Sequence[TaskScore],
    correlations: Correlations,
) -> SuiteScore:
    by_task: dict[str, list[dict[str, float]]] = {}
    cut = set()
    for row in rows:
        excluded = set(suite.others.get(row.task, ())) & row.by_language.keys()
        cut |= {row.task} if excluded else set()
        by_language = {code: value for code, value in row.by_language.items() if code not in excluded}
        by_task.setdefault(row.task, []).append(by_language)
    published = {
        task: [{code: by[code] for code in suite.languages[task] if code in by} for by in languages]
        for task, languages in by_task.items()
    }
    scores = _overall(suite, published)
    counts = {
        task: {"languages": min(map(len, languages)), "of": len(suite.languages[task])}
        for task, languages in published.items()
    }
    # The error of a task's mean is known over all languages that were run, and over no others.
    errors = {task: None if task in cut else error for task, error in _task_errors(rows).items()}
    exact = _Errors(
        {task: error for task, error in errors.items() if published[task] == by_task[task]}, correlations
    )
    paper = {
        "value": scores.paper,
        **_suite_interval(suite, scores, exact),
        "categories": scores.categories,
        "category_intervals": {
            name: _weighted_interval(scores.categories[name], _shares([tasks]), exact)["ci"]
            for name, tasks in suite.categories.items()
        },
    }
    return SuiteScore(
        suite=suite.suite,
        protocol=protocol,
        view=view,
        paper=SuiteValue(**paper),
        flat=SuiteValue(value=scores.flat, **_suite_interval(suite, scores, exact, flat=True)),
        extended=None if published == by_task else _extended(suite, by_task, _Errors(errors, correlations)),
        missing=list(scores.missing),
        tasks=counts,
        methods={row.task: str(row.method) for row in rows},
        complete=not scores.missing and all(count["languages"] == count["of"] for count in counts.values()),
    )


def _extended(
    suite: SuiteSummary,
    by_task: Mapping[str, Sequence[Mapping[str, float]]],
    errors: _Errors,
) -> ExtendedScore:
    """Return the scores with the languages that fragments added."""
    scores = _overall(suite, by_task)
    added = {
        task: sorted({code for by in languages for code in by} - set(suite.languages[task]))
        for task, languages in by_task.items()
    }
    return ExtendedScore(
        paper=SuiteValue(value=scores.paper, **_suite_interval(suite, scores, errors)),
        flat=SuiteValue(value=scores.flat, **_suite_interval(suite, scores, errors, flat=True)),
        categories=scores.categories,
        languages={task: codes for task, codes in added.items() if codes},
    )


@dataclass(frozen=True, slots=True)
class _Errors:
    """The standard errors of the scores of tasks, and the correlations of those that share items."""

    by_task: Mapping[str, float | None]
    correlations: Correlations


def _task_errors(rows: Iterable[TaskScore]) -> dict[str, float | None]:
    """Return the standard error of each task's score, which is the mean of its headline metrics.

    Metrics of one task are computed from the same answers: their mean has at most the mean of their errors. None
    where one of them has no error, unless all its items score the same.
    """
    by_task: dict[str, list[float | None]] = {}
    for row in rows:
        by_task.setdefault(row.task, []).append(0.0 if row.ci_method == "constant" else row.se)
    return {
        task: None if None in errors else fmean(error for error in errors if error is not None)
        for task, errors in by_task.items()
    }


def _suite_interval(
    suite: SuiteSummary, scores: Overall, errors: _Errors, *, flat: bool = False
) -> dict[str, Any]:
    """Return the interval of a suite's score; None where a task has no error."""
    if flat:
        return _weighted_interval(scores.flat, _shares([suite.tasks]), errors)
    return _weighted_interval(scores.paper, _shares(list(suite.categories.values())), errors)


def _shares(groups: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return the weight of every task in the mean over groups of the means of their tasks."""
    return {task: 1 / (len(groups) * len(tasks)) for tasks in groups for task in tasks}


def _weighted_interval(value: float | None, weights: Mapping[str, float], errors: _Errors) -> dict[str, Any]:
    """Return the interval of a weighted mean of tasks; None where one has no error."""
    task_errors = [error for task in weights if (error := errors.by_task.get(task)) is not None]
    if value is None or len(task_errors) < len(weights):
        return Interval(se=None, low=None, high=None, method=None).to_json()
    index_of = {task: index for index, task in enumerate(weights)}
    correlations = np.eye(len(task_errors))
    for (first, second), correlation in errors.correlations.items():
        if first in index_of and second in index_of:
            row, column = index_of[first], index_of[second]
            correlations[row, column] = correlations[column, row] = correlation
    return correlated_mean(
        value, np.array([*weights.values()]), np.array(task_errors), correlations
    ).to_json()


def _overall(suite: SuiteSummary, by_task: Mapping[str, Sequence[Mapping[str, float]]]) -> Overall:
    """Return the overall scores, a task's score being the mean over its languages and headline metrics."""
    scores = {
        task: fmean(fmean(by.values()) for by in languages) if all(languages) else None
        for task, languages in by_task.items()
    }
    return overall(scores, suite.tasks, suite.categories)
