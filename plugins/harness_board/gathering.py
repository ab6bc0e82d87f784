"""A board from all its sources: runs, published scores, score files, metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from harness import Run, SuiteSummary, UnknownNameError, UsageError
from harness.languages.table import known_languages
from harness.reporting.equity.report import equity_report
from harness_board.document import Board, System, TaskColumn
from harness_board.metadata import SystemMetadata
from harness_board.published import (
    catalog_tasks,
    published_metadata,
    published_systems,
    read_scores,
    table_systems,
)
from harness_board.run_reading import extensions, run_suite, run_systems, run_tasks
from harness_board.sections import checklist_sections

if TYPE_CHECKING:
    from harness.specs.catalog import Catalog
    from harness.specs.schema import SuiteSpec

__all__ = ["gather"]


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
        published: A suite whose published scores the board shows.
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
    _require_common_task(runs)
    columns: dict[str, TaskColumn] = {}
    for run in runs:
        columns |= {task.task: _united(columns.get(task.task), task) for task in run_tasks(run)}
    systems, known = [system for run in runs for system in run_systems(run)], list(metadata)
    if published is not None and catalog is not None:
        found = published_systems(catalog, published, means)
        systems += found
        known += published_metadata(published)
        names = [*catalog.suite(published).tasks, *(score.task for each in found for score in each.scores)]
        columns = _with_tasks(columns, catalog_tasks(catalog, names))
    if scores and catalog is not None:
        rows = [row for path in scores for row in read_scores(path)]
        columns = _with_tasks(columns, catalog_tasks(catalog, (row.task for row in rows)))
        systems += table_systems(rows, columns, renamed or {})
    columns = _with_tasks(columns, _unknown_tasks(systems, columns))
    suite = _suite(runs, published, catalog, columns)
    name, order, categories = _arrangement(suite)
    columns = {task: _of_suite(column, suite) for task, column in columns.items()}
    return Board(
        title=title or _title(name, catalog),
        tasks=_ordered(columns, categories, order),
        systems=tuple(_distinct(_described(systems, known, required=metadata))),
        languages=_languages(columns.values()),
        suite=name,
        categories=categories,
        extensions=extensions(runs),
        checklists=checklist_sections(runs),
        equity=equity_report(runs),
        date=max((date.fromisoformat(run.results.run.created[:10]) for run in runs), default=None),
    )


def _no_sources() -> UsageError:
    return UsageError(
        "A board needs runs, --from-published SUITE or --from-scores FILE; found none of them.",
        hint="Try: harness board --from-published xtreme_r -o board.html",
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


def _ordered(
    columns: Mapping[str, TaskColumn], categories: Mapping[str, Sequence[str]], order: Sequence[str]
) -> tuple[TaskColumn, ...]:
    category = {task: name for name, tasks in categories.items() for task in tasks}
    place = {task: index for index, task in enumerate(order)}
    tasks = sorted(columns.values(), key=lambda task: place.get(task.task, len(place)))
    return tuple(replace(task, category=category.get(task.task, "")) for task in tasks)


def _require_common_task(runs: Sequence[Run]) -> None:
    """Raise `UsageError` for a run that shares no task with any other, so that nothing can be compared."""
    tasks = [{row.task for row in run.results.tasks} for run in runs]
    for index, run in enumerate(runs):
        if not tasks[index]:
            raise UsageError(f"The run {str(run.path)!r} has no scores: no cell of it was finished.")
        others = set[str]().union(*(found for place, found in enumerate(tasks) if place != index))
        if others and not tasks[index] & others:
            raise UsageError(
                f"The run {str(run.path)!r} ({', '.join(sorted(tasks[index]))}) has no task in common with the "
                f"others ({', '.join(sorted(others))}).",
                hint="Make a board for each.",
            )


def _with_tasks(columns: dict[str, TaskColumn], more: Iterable[TaskColumn]) -> dict[str, TaskColumn]:
    return {**{task.task: task for task in more}, **columns}


def _unknown_tasks(systems: Sequence[System], columns: Mapping[str, TaskColumn]) -> list[TaskColumn]:
    found: dict[str, TaskColumn] = {}
    for score in (score for system in systems for score in system.scores if score.task not in columns):
        known = found.get(score.task)
        metrics = tuple(dict.fromkeys((*(known.metrics if known else ()), score.metric)))
        languages = tuple(dict.fromkeys((*(known.languages if known else ()), *score.by_language)))
        found[score.task] = TaskColumn(
            task=score.task, metrics=metrics, headline=metrics, languages=languages
        )
    return list(found.values())


def _suite(
    runs: Sequence[Run], published: str | None, catalog: Catalog | None, columns: Mapping[str, TaskColumn]
) -> SuiteSummary | SuiteSpec | None:
    """Return the suite whose categories hold on this board, or None: runs know theirs, score files have its tasks."""
    found = next((suite for run in runs if (suite := run_suite(run)) is not None), None)
    if found is not None or catalog is None or (runs and published is None):
        return found
    names = [published] if published is not None else catalog.names("suite")
    specs = map(catalog.suite, names)
    return next((spec for spec in specs if set(spec.tasks) <= set(columns)), None)


def _arrangement(
    suite: SuiteSummary | SuiteSpec | None,
) -> tuple[str, tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return the name of a suite, the order of its tasks, and its categories."""
    if suite is None:
        return "", (), {}
    return suite.suite, tuple(suite.tasks), {name: tuple(tasks) for name, tasks in suite.categories.items()}


def _of_suite(column: TaskColumn, suite: SuiteSummary | SuiteSpec | None) -> TaskColumn:
    """Return a task with the languages and metrics that the suite averages."""
    if suite is None:
        return column
    languages, metrics = suite.languages.get(column.task), suite.metrics.get(column.task)
    return replace(
        column,
        languages=tuple(languages or column.languages),
        headline=tuple(metrics or column.headline),
    )


def _described(
    systems: Sequence[System], known: Sequence[SystemMetadata], *, required: Sequence[SystemMetadata]
) -> list[System]:
    labels = {name for system in systems for name in (system.label, system.path) if name}
    for item in required:
        if not set(item.names) & labels:
            raise UnknownNameError("system of the board", item.name, labels)
    return [
        _joined(system, next((item for item in known if {system.label, system.path} & set(item.names)), None))
        for system in systems
    ]


def _joined(system: System, about: SystemMetadata | None) -> System:
    if about is None:
        return system
    return replace(
        system,
        label=about.label or system.label,
        year=about.year or system.year,
        metadata={**system.metadata, **about.plain()},
    )


def _distinct(systems: Sequence[System]) -> list[System]:
    """Return systems whose names, protocols, methods and views together are different: the run's name is added."""

    def key(system: System) -> tuple[str, ...]:
        return system.label, system.protocol, system.method, system.view

    counts = Counter(map(key, systems))
    return [
        replace(system, label=f"{system.label} ({system.run})")
        if counts[key(system)] > 1 and system.run
        else system
        for system in systems
    ]


def _languages(columns: Iterable[TaskColumn]) -> dict[str, dict[str, str]]:
    columns, table = list(columns), known_languages()
    found = {
        code: {"name": known.name, "family": known.family, "script": known.script}
        if (known := table.get(code) if code in table else None)
        else {"name": code, "family": "unknown", "script": "unknown"}
        for code in sorted({code for column in columns for code in column.shown})
    }
    return {**found, **{code: about for column in columns for code, about in column.described.items()}}
