"""From task scores to a suite's overall score: the mean of category means, and the plain mean next to it.

XTREME-R's ``Avg`` is the mean of four category means, in which a question-answering task counts with the mean of
its F1 and exact match (Ruder et al. 2021, Table 4); the public scoring script takes the plain mean over tasks. Both
are given. A suite in which a task is missing has neither: a mean over fewer tasks never passes as the suite's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from harness.errors import UsageError


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


def task_score(metrics: Mapping[str, float], headline: Sequence[str]) -> float:
    """Return the score of a task: the mean of its headline metrics; raises `UsageError` where one is missing."""
    missing = [name for name in headline if name not in metrics]
    if missing or not headline:
        available = ", ".join(metrics) or "nothing"
        raise UsageError(
            f"A task's score is the mean of {', '.join(headline) or 'its headline metrics'}; found {available}."
        )
    return fmean(metrics[name] for name in headline)


def task_scores(
    scores: Mapping[str, Mapping[str, float]], headlines: Mapping[str, Sequence[str]]
) -> dict[str, float | None]:
    """Return the score of every task that has a headline; None where one of its headline metrics is missing."""
    return {
        task: task_score(scores[task], headline)
        if headline and set(headline) <= set(scores.get(task, {}))
        else None
        for task, headline in headlines.items()
    }


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
