"""A board from all its sources: runs, published scores, score files, metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from harness import Run, UnknownNameError, UsageError
from harness.languages import known_languages
from harness.reporting import equity_report
from harness.storage import SuiteSummary
from harness_board.document import Board, Score, System, TaskColumn
from harness_board.metadata import SystemMetadata
from harness_board.published import (
    catalog_tasks,
    published_metadata,
    published_systems,
    read_scores,
    table_systems,
)
from harness_board.run_reading import run_systems, run_tasks
from harness_board.sections import checklist_sections, extension_section

if TYPE_CHECKING:
    from harness.specs import Catalog, SuiteSpec

SAME_SCORE = 1e-9
"""Points by which two scores of the same answers may differ."""


def _no_sources() -> UsageError:
    return UsageError(
        "A board needs runs, --from-published SUITE or --from-scores FILE; found none of them.",
        hint="Try: harness board --from-published xtreme_r -o board.html",
    )


def gather(
    *,
    runs: Sequence[Run] = (),
    published: str | None = None,
    scores: Sequence[Path] = (),
    renamed: Mapping[str, str] | None = None,
    metadata: Sequence[SystemMetadata] = (),
    catalog: Catalog | None = None,
    means: Collection[str] = (),
    title: str = "",
) -> Board:
    """Return the board of all sources.

    Args:
        runs: Their suites decide the order of tasks and their categories.
        published: A suite or task whose published scores the board shows.
        scores: Files or folders of tab-separated scores.
        renamed: Names in score files -> names on the board.
        metadata: What the makers of systems state.
        catalog: The installed tasks and suites; needed for `published` and `scores`.
        means: Metrics that are means of item scores: published ones have errors where the number of items is known.
        title: Heading.

    Raises:
        UsageError: where there is nothing to show, runs share no task, or metadata are about no system.
    """
    if not runs and published is None and not scores:
        raise _no_sources()
    _require_common_task(runs, checklists := checklist_sections(runs))
    columns: dict[str, TaskColumn] = {}
    for run in runs:
        columns |= {task.task: _united(columns.get(task.task), task) for task in run_tasks(run)}
    systems = _united_baselines([system for run in runs for system in run_systems(run)])
    if published is not None and catalog is not None:
        more = published_systems(catalog, published, means)
        suite_tasks = () if published in catalog.names("task") else catalog.suite(published).tasks
        names = [*suite_tasks, *(score.task for system in more for score in system.scores)]
        columns = catalog_tasks(catalog, names) | columns
        systems += more
    if scores and catalog is not None:
        rows = [row for path in scores for row in read_scores(path)]
        columns = catalog_tasks(catalog, (row.task for row in rows)) | columns
        systems += table_systems(rows, columns, renamed or {})
    columns = _unknown_tasks(systems, columns) | columns
    suite = _suite(runs, published, catalog, columns)
    name, order = (suite.suite, list(suite.tasks)) if suite else ("", [])
    tasks = [_of_suite(column, suite) for column in columns.values()]
    tasks.sort(key=lambda task: order.index(task.task) if task.task in order else len(order))
    return Board(
        title=title or _title(name, catalog),
        tasks=tuple(tasks),
        systems=tuple(_distinct(_described(_starred(systems), metadata))),
        languages=_languages(tasks),
        suite=name,
        categories={key: tuple(names) for key, names in suite.categories.items()} if suite else {},
        extended=extension_section(runs),
        checklists=checklists,
        equity=equity_report(runs),
        date=max((date.fromisoformat(run.results.run.created[:10]) for run in runs), default=None),
    )


def _title(suite: str, catalog: Catalog | None) -> str:
    """Return the name of a suite in words: as its description begins, or made from its identifier."""
    if catalog is not None and suite in catalog.names("suite"):
        name, colon, _ = catalog.suite(suite).description.partition(":")
        if colon and len(name) <= 40:
            return name
    return suite.replace("_", " ").capitalize() or "Board"


def _united(known: TaskColumn | None, other: TaskColumn) -> TaskColumn:
    """Return the task of an earlier run with the languages that a later run has added to it."""
    if known is None:
        return other
    return replace(
        known,
        added=tuple(dict.fromkeys((*known.added, *other.added))),
        marks={**other.marks, **known.marks},
        described={**other.described, **known.described},
    )


def _require_common_task(runs: Sequence[Run], checklists: Collection[str]) -> None:
    """Raise `UsageError` for a run that shares no task with any other, so that nothing can be compared.

    Runs of `checklists` alone need no common task: a checklist has a section of its own.
    """
    tasks = [{row.task for row in run.results.tasks} for run in runs]
    for index, (run, own) in enumerate(zip(runs, tasks, strict=True)):
        if not own:
            raise UsageError(f"The run {str(run.path)!r} has no scores: no cell of it was finished.")
        others = set[str]().union(*tasks[:index], *tasks[index + 1 :])
        if others - set(checklists) and not own & others and not own <= set(checklists):
            raise UsageError(
                f"The run {str(run.path)!r} ({', '.join(sorted(own))}) has no task in common with the "
                f"others ({', '.join(sorted(others))}).",
                hint="Make a board for each.",
            )


def _unknown_tasks(systems: Sequence[System], columns: Mapping[str, TaskColumn]) -> dict[str, TaskColumn]:
    """Return the tasks of scores that have no column, with the metrics and languages that they are scored in."""
    scores: dict[str, list[Score]] = {}
    for score in (score for system in systems for score in system.scores if score.task not in columns):
        scores.setdefault(score.task, []).append(score)
    unknown = {}
    for task, members in scores.items():
        metrics = tuple(dict.fromkeys(score.metric for score in members))
        languages = tuple(dict.fromkeys(code for score in members for code in score.by_language))
        unknown[task] = TaskColumn(task=task, metrics=metrics, headline=metrics, languages=languages)
    return unknown


def _suite(
    runs: Sequence[Run], published: str | None, catalog: Catalog | None, columns: Mapping[str, TaskColumn]
) -> SuiteSummary | SuiteSpec | None:
    """Return the suite whose categories hold on this board, or None: runs know theirs, score files have its tasks."""
    of_runs = [suite for run in runs for suite in run.manifest.suites]
    if of_runs or catalog is None or (runs and published is None):
        return next(iter(of_runs), None)
    names = [published] if published in catalog.names("suite") else catalog.names("suite")
    specs = map(catalog.suite, names)
    return next((spec for spec in specs if set(spec.tasks) <= set(columns)), None)


def _of_suite(column: TaskColumn, suite: SuiteSummary | SuiteSpec | None) -> TaskColumn:
    """Return a task with its category in the suite, and the languages and metrics that the suite averages."""
    if suite is None:
        return column
    return replace(
        column,
        category=next((name for name, tasks in suite.categories.items() if column.task in tasks), ""),
        languages=tuple(suite.languages.get(column.task) or column.languages),
        headline=tuple(suite.metrics.get(column.task) or column.headline),
    )


def _described(systems: Sequence[System], metadata: Sequence[SystemMetadata]) -> list[System]:
    """Return the systems with what is stated of them; raises `UnknownNameError` for metadata of no system."""
    labels = {name for system in systems for name in (system.label, system.path) if name}
    for item in metadata:
        if not set(item.names) & labels:
            raise UnknownNameError("system of the board", item.name, labels)
    stated = [*metadata, *published_metadata()]
    described = []
    for system in systems:
        about = next((item for item in stated if {system.label, system.path} & set(item.names)), None)
        if about is None:
            described.append(system)
        else:
            facts = {**system.metadata, **about.plain()}
            label, year = about.label or system.label, about.year or system.year
            described.append(replace(system, label=label, year=year, metadata=facts))
    return described


def _united_baselines(systems: Sequence[System]) -> list[System]:
    """Return systems with every baseline once, where runs that were made with it have equal scores.

    Of a task that several of them have, the scores with most languages are kept.
    """
    united: list[System] = []
    for system in systems:
        at = next((at for at, other in enumerate(united) if _is_same_baseline(system, other)), None)
        if at is None:
            united.append(system)
            continue
        first = united[at]
        scores = {(score.task, score.metric): score for score in first.scores}
        for score in system.scores:
            other = scores.setdefault((score.task, score.metric), score)
            if len(score.by_language) > len(other.by_language):
                scores[score.task, score.metric] = score
        absences = {**system.absences, **first.absences}
        scored = {f"{score.task}:{code}" for score in scores.values() for code in score.by_language}
        united[at] = replace(
            first,
            method=" + ".join(sorted({*first.method.split(" + "), *system.method.split(" + ")})),
            scores=tuple(scores.values()),
            absences={key: reason for key, reason in absences.items() if key not in scored},
        )
    return united


def _is_same_baseline(one: System, other: System) -> bool:
    """Return whether two systems are the same baseline, with the same score wherever both have one."""

    def values(system: System) -> dict[tuple[str, str, str], float]:
        return {
            (own.task, own.metric, code): v for own in system.scores for code, v in own.by_language.items()
        }

    names = ("label", "path", "protocol", "view", "adapter")
    if one.adapter != "baseline" or any(getattr(one, name) != getattr(other, name) for name in names):
        return False
    first, second = values(one), values(other)
    return all(abs(first[key] - second[key]) < SAME_SCORE for key in first.keys() & second.keys())


def _starred(systems: Sequence[System]) -> list[System]:
    """Mark the scores that are not comparable with the other rows of their task.

    The rows are those whose source has no reservation; where all have one, those with the most frequent reason, which
    are comparable with each other (two papers' systems on one re-sampled test set).
    """
    reasons: dict[str, Counter[str]] = {}
    for system in systems:
        for task, reason in {(score.task, score.reason) for score in system.scores}:
            reasons.setdefault(task, Counter())[reason] += 1
    usual = {task: "" if "" in own else own.most_common(1)[0][0] for task, own in reasons.items()}

    def starred(score: Score) -> Score:
        return replace(score, is_starred=score.reason != usual[score.task])

    return [replace(system, scores=tuple(map(starred, system.scores))) for system in systems]


def _distinct(systems: Sequence[System]) -> list[System]:
    """Return systems whose names, protocols and views together are different: the name of the run, or the method."""
    keys = [(system.label, system.protocol, system.view) for system in systems]
    of_run = [(*key, system.run) for key, system in zip(keys, systems, strict=True)]
    return [
        replace(system, label=f"{system.label} ({system.run if of_run.count(run) == 1 else system.method})")
        if keys.count(key) > 1 and system.run
        else system
        for key, run, system in zip(keys, of_run, systems, strict=True)
    ]


def _languages(columns: Sequence[TaskColumn]) -> dict[str, dict[str, str]]:
    table, about = known_languages(), {}
    for code in sorted({code for column in columns for code in column.shown}):
        names = (code, "unknown", "unknown")
        if code in table:
            names = (table.get(code).name, table.get(code).family, table.get(code).script)
        about[code] = dict(zip(("name", "family", "script"), names, strict=True))
    return about | {code: described for column in columns for code, described in column.described.items()}
