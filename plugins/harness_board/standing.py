"""The table of a page before its script runs, for readers without one: scores alone, the best system first.

Ranks, rank intervals, colours, filters and sorting are those of ``static/compute.mjs`` and of nothing else. Overall
scores are those of `harness.metrics.suites.overall`, so that board and command line never disagree.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from harness.metrics.suites import overall
from harness_board.document import Board, System, TaskColumn

__all__ = ["Standing", "points", "standing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Texts of a table; the first field of a row is the system, the last ones are its scores."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def points(value: float | None, *, is_whole: bool = True) -> str:
    """Return a score with one decimal, ``~`` after a mean over fewer languages than the task has, ``-`` for None."""
    if value is None:
        return "-"
    text = f"{round(value, 6):,.1f}"
    return ("0.0" if text == "-0.0" else text) + ("" if is_whole else "~")


def standing(board: Board, *, task: str | None = None, language: str | None = None) -> Standing:
    """Return the table of a board, of one task (its languages as columns), or of one language (its tasks).

    Systems are ordered by their overall score. Those over fewer languages follow complete ones; those without a score
    come last, and are only shown on the table of the whole board.
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
    ordered = []
    for system in board.systems:
        means = {own.task: _score(board, system, own, language) for own in tasks}
        found = overall({name: means[name][0] for name in used}, used, groups)
        value = found.paper if groups else found.flat
        is_whole = all(means[name][1] for name in used)
        scores = [_score(board, system, own, code) for own, code in columns]
        if value is None and (task or language) and all(score is None for score, _ in scores):
            continue
        setting = f"{system.protocol} {system.view}".strip().replace("_", " ")
        texts = (points(score, is_whole=whole) for score, whole in scores)
        row = (system.label, setting, points(value, is_whole=is_whole), *texts)
        ordered.append(((value is None, value is not None and not is_whole, -(value or 0.0)), row))
    marks = [own.marks.get(code or "", "") for own, code in columns]
    heads = [code if codes else own.task for own, code in columns]
    return Standing(
        heads=(
            "System",
            "Setting",
            "Overall",
            *(f"{head}{mark}" for head, mark in zip(heads, marks, strict=True)),
        ),
        rows=tuple(row for _, row in sorted(ordered, key=lambda item: item[0])),
    )


def _score(board: Board, system: System, task: TaskColumn, code: str | None) -> tuple[float | None, bool]:
    """Return the mean of a task's headline metrics, over its languages or in one, and whether it is over all."""
    own = {score.metric: score for score in system.scores if score.task == task.task}
    metrics = task.headline if code is None else board.language_headline(task)
    found = [own[metric] for metric in metrics if metric in own]
    values = [score.mean if code is None else score.by_language.get(code) for score in found]
    known = [value for value in values if value is not None]
    is_whole = code is not None or all(score.is_whole for score in found)
    return (fmean(known) if known and len(known) == len(metrics) else None), is_whole
