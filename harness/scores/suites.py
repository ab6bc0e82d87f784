"""From task scores to a suite's overall score: the mean of category means, and the plain mean next to it.

XTREME-R's ``Avg`` is the mean of four category means, in which a question-answering task counts with the mean of
its F1 and exact match (Ruder et al. 2021, Table 4); the public scoring script takes the plain mean over tasks. Both
are given. A suite in which a task is missing has neither: a mean over fewer tasks never passes as the suite's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from harness.errors import UsageError
from harness.statistics import Interval
from harness.statistics.interval import correlated_mean
from harness.storage.results import ExtendedScore, SuiteScore, SuiteSummary, SuiteValue, TaskScore
from harness.table import grouped

Correlations = Mapping[tuple[str, str], float]
"""By two tasks: the correlation of their scores."""
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
