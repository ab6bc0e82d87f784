"""The table of a page before its script runs, for readers without one: scores alone, the best system first.

Ranks, rank intervals, colours, filters and sorting are those of ``static/compute.mjs`` and of nothing else. Overall
scores are those of `harness.metrics.suites.overall`, so that board and command line never disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from harness.metrics.suites import overall
from harness_board.document import Board, System, TaskColumn

__all__ = ["Standing", "points", "standing"]

Means = Mapping[str, tuple[float | None, bool]]
"""Task -> a system's score, and whether it is over all languages of the task."""
Scorer = Callable[[TaskColumn, str | None], tuple[float | None, bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Texts of a table; the first field of a row is the system, the second its setting, the others are its scores."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    complete: int
    """How many systems have a whole score in every task."""


def points(value: float | None, *, is_whole: bool = True) -> str:
    """Return a score with one decimal, ``~`` after a mean over fewer languages than the task has, ``-`` for None."""
    if value is None:
        return "-"
    text = f"{round(value, 6):,.1f}"
    return ("0.0" if text == "-0.0" else text) + ("" if is_whole else "~")


def standing(board: Board, *, task: str | None = None, language: str | None = None) -> Standing:
    """Return the table of a board, of one task (its languages as columns), or of one language (its tasks).

    Systems are ordered by their average over all tasks; where no system has all, over those that all comparable systems
    have. The others follow, those with most tasks first. On the table of one task or language, systems without a score
    are skipped.
    """
    tasks = [
        own
        for own in board.tasks
        if (task is None or own.task == task) and (language is None or language in own.shown)
    ]
    codes = tasks[0].shown if task is not None and tasks else ()
    columns = [(tasks[0], code) for code in codes] if codes else [(own, language) for own in tasks]
    kept = {name: [one.task for one in tasks if one.task in own] for name, own in board.categories.items()}
    groups = {name: own for name, own in kept.items() if own}
    used = [one for own in groups.values() for one in own] or [one.task for one in tasks]
    metrics = {own.task: (own.headline, board.language_headline(own)) for own in tasks}
    found = []
    for system in board.systems:
        score = _scorer(system, metrics)
        means = {own.task: score(own, language) for own in tasks}
        if not (task or language) or any(value is not None for value, _ in means.values()):
            found.append((system, score, means))
    common = _common([_whole(means, used) for _, _, means in found], used)
    ordered = []
    for system, score, means in found:
        own_used, own_groups = (used, groups) if common in ([], used) else (common, {})
        value, is_whole = _average(means, own_used, own_groups)
        is_ranked = bool(common) and value is not None and is_whole
        known = sum(mean is not None for mean, _ in means.values())
        texts = (points(one, is_whole=whole) for one, whole in (score(*place) for place in columns))
        setting = " · ".join(
            filter(None, (f"{system.protocol} {system.view}".strip().replace("_", " "), system.source))
        )
        row = (system.label, setting, points(value, is_whole=is_whole), *texts)
        ordered.append(((not is_ranked, -(value or 0.0) if is_ranked else -known), row))
    marks = [own.marks.get(code or "", "") for own, code in columns]
    names = [code if codes else own.task for own, code in columns]
    return Standing(
        heads=("System", "Average", *(f"{name}{mark}" for name, mark in zip(names, marks, strict=True))),
        rows=tuple(row for _, row in sorted(ordered, key=lambda item: item[0])),
        complete=sum(len(_whole(means, used)) == len(used) for _, _, means in found),
    )


def _whole(means: Means, used: Sequence[str]) -> list[str]:
    """Return the tasks that a system has a score of over all their languages."""
    return [name for name in used if means[name][0] is not None and means[name][1]]


def _common(having: Sequence[Sequence[str]], used: Sequence[str]) -> list[str]:
    """Return the tasks that systems are ordered by, as ``basis`` of ``compute.mjs``; empty for none."""
    if any(len(own) == len(used) for own in having):
        return list(used)
    left = [own for own in having if own]
    while left:
        common = [name for name in used if all(name in own for own in left)]
        if common:
            return common
        fewest = min(map(len, left))
        left = [own for own in left if len(own) > fewest]
    return []


def _average(
    means: Means, used: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> tuple[float | None, bool]:
    found = overall({name: means[name][0] for name in used}, used, groups)
    return (found.paper if groups else found.flat), all(means[name][1] for name in used)


def _scorer(system: System, metrics: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> Scorer:
    """Return what gives a system's score of a task over its languages, or in one, and whether it is over all."""
    known = {(one.task, one.metric): one for one in system.scores}

    def score(task: TaskColumn, code: str | None) -> tuple[float | None, bool]:
        names = metrics[task.task][code is not None]
        found = [known[task.task, name] for name in names if (task.task, name) in known]
        values = [one.mean if code is None else one.by_language.get(code) for one in found]
        scored = [value for value in values if value is not None]
        is_whole = code is not None or all(one.is_whole for one in found)
        return (fmean(scored) if scored and len(scored) == len(names) else None), is_whole

    return score
