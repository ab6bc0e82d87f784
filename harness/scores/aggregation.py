"""From cells to task scores and from these to the overall scores of suites: unweighted means, next to each other.

XTREME-R scores a task by the unweighted mean over its test languages, English included where it is one of them
(Ruder et al. 2021, Tables 15-24). The transfer gap is the source language's score minus the mean of the others
(section 4.2). A mean over fewer languages than the task has is marked: it never passes as the task's score.

XTREME-R's ``Avg`` is the mean of four category means, in which a question-answering task counts with the mean of
its F1 and exact match (Table 4); the public scoring script takes the plain mean over tasks. Both are given. A suite in
which a task is missing has neither: a mean over fewer tasks never passes as the suite's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, stdev
from typing import Any

import numpy as np

from harness.errors import UsageError
from harness.statistics import Interval, independent_mean
from harness.statistics.interval import correlated_mean
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
from harness.table import grouped

Group = tuple[str, str | None, str | None, str]
CellGroups = Mapping[Group, Sequence[CellResult]]
Correlations = Mapping[tuple[str, str], float]
"""By two tasks: the correlation of their scores."""


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


Correlate = Callable[[Sequence[TaskScore]], Correlations]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overall:
    """The overall scores of a suite, in the unit of the task scores."""

    paper: float | None
    """The mean of the category means; None where a task is missing or the suite has no categories."""
    categories: dict[str, float | None]
    """By category: the mean of its tasks; None where one of them is missing."""
    flat: float | None
    """The mean of all tasks; None where one is missing."""
    missing: tuple[str, ...]
    """The tasks without a score, in the order of the suite."""


def task_scores(
    scores: Mapping[str, Mapping[str, float]], headlines: Mapping[str, Sequence[str]]
) -> dict[str, float | None]:
    """Return the score of every task, the mean of its headline metrics; None where it has none, or one is missing."""
    return {task: _mean(scores.get(task, {}), headline) for task, headline in headlines.items()}


def overall(
    scores: Mapping[str, float | None], tasks: Sequence[str], categories: Mapping[str, Sequence[str]]
) -> Overall:
    """Return the overall scores of a suite of `tasks`; scores of other tasks do not count.

    Raises `UsageError` where there are categories that do not hold every task exactly once: a task outside of
    them, or in two of them, would be weighted by accident.
    """
    members = [task for names in categories.values() for task in names]
    if members and sorted(members) != sorted(tasks):
        raise UsageError(
            f"The categories hold {', '.join(sorted(members))}; expected each of {', '.join(sorted(tasks))} once."
        )
    means = {name: _mean(scores, names) for name, names in categories.items()}
    return Overall(
        paper=_mean(means, list(means)),
        categories=means,
        flat=_mean(scores, tasks),
        missing=tuple(task for task in tasks if scores.get(task) is None),
    )


def _mean(scores: Mapping[str, float | None], names: Sequence[str]) -> float | None:
    values = [value for name in names if (value := scores.get(name)) is not None]
    return fmean(values) if values and len(values) == len(names) else None


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
            # The metrics whose mean is the task's score in the suite.
            headline = suite.headline(row.task, (row.metric,) if row.headline else ())
            fixed = suite.views.get(row.task, {})
            if row.task in suite.tasks and row.metric in headline and fixed.items() <= row.view.items():
                view = {name: value for name, value in row.view.items() if name not in fixed}
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
    exact = {task: error for task, error in errors.items() if published[task] == by_task[task]}
    interval = partial(_weighted_interval, exact, correlations)
    paper, flat = _suite_values(suite, scores, interval)
    category_intervals = {
        name: interval(scores.categories[name], [tasks])["ci"] for name, tasks in suite.categories.items()
    }
    extended = None
    if published != by_task:
        # With the languages that fragments added.
        further = _overall(suite, by_task)
        values = _suite_values(suite, further, partial(_weighted_interval, errors, correlations))
        added = {
            task: sorted({code for by in languages for code in by} - set(suite.languages[task]))
            for task, languages in by_task.items()
        }
        extended = ExtendedScore(
            paper=SuiteValue(**values[0]),
            flat=SuiteValue(**values[1]),
            categories=further.categories,
            languages={task: codes for task, codes in added.items() if codes},
        )
    return SuiteScore(
        suite=suite.suite,
        protocol=protocol,
        view=view,
        paper=SuiteValue(**paper, categories=scores.categories, category_intervals=category_intervals),
        flat=SuiteValue(**flat),
        extended=extended,
        missing=list(scores.missing),
        tasks=counts,
        methods={row.task: str(row.method) for row in rows},
        complete=not scores.missing and all(count["languages"] == count["of"] for count in counts.values()),
    )


def _task_errors(rows: Iterable[TaskScore]) -> dict[str, float | None]:
    """Return the standard error of each task's score, which is the mean of its headline metrics.

    Metrics of one task are computed from the same answers: their mean has at most the mean of their errors. None
    where one of them has no error, unless all its items score the same.
    """
    by_task = grouped((row.task, 0.0 if row.ci_method == "constant" else row.se) for row in rows)
    return {
        task: None if None in errors else fmean(error for error in errors if error is not None)
        for task, errors in by_task.items()
    }


def _suite_values(
    suite: SuiteSummary, scores: Overall, interval: Callable[..., dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the mean of category means and the plain mean, with intervals; None where a task has no error."""
    pairs = ((scores.paper, list(suite.categories.values())), (scores.flat, [suite.tasks]))
    return [{"value": value, **interval(value, groups)} for value, groups in pairs]


def _weighted_interval(
    errors: Mapping[str, float | None],
    correlations: Correlations,
    value: float | None,
    groups: Sequence[Sequence[str]],
) -> dict[str, Any]:
    """Return the interval of the mean over groups of the means of their tasks; None where one has no error."""
    weights = {task: 1 / (len(groups) * len(tasks)) for tasks in groups for task in tasks}
    task_errors = [error for task in weights if (error := errors.get(task)) is not None]
    if value is None or len(task_errors) < len(weights):
        return Interval().to_json()
    matrix, tasks = np.eye(len(task_errors)), list(weights)
    for (first, second), correlation in correlations.items():
        if first in weights and second in weights:
            row, column = tasks.index(first), tasks.index(second)
            matrix[row, column] = matrix[column, row] = correlation
    return correlated_mean(value, np.array([*weights.values()]), np.array(task_errors), matrix).to_json()


def _overall(suite: SuiteSummary, by_task: Mapping[str, Sequence[Mapping[str, float]]]) -> Overall:
    """Return the overall scores, a task's score being the mean over its languages and headline metrics."""
    scores = {
        task: fmean(fmean(by.values()) for by in languages) if all(languages) else None
        for task, languages in by_task.items()
    }
    return overall(scores, suite.tasks, suite.categories)
