"""A board from all its sources: runs, published scores, score files, metadata; and what runs add below its table.

Below are the means with added languages, the costs of languages, and the failing cases of checklists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness import Run, UnknownNameError, UsageError, grouped
from harness.languages import known_languages
from harness.metrics import metric_name
from harness.reporting import (
    ADDED,
    SIDE_LEGEND,
    Block,
    EquityReport,
    Fold,
    Matrix,
    Notes,
    Section,
    conditions_of,
    equity_report,
    error_table,
    installed_sections,
    is_added,
    make_table,
    matrices,
    percent,
    read_sections,
    side_notes,
    side_table,
)
from harness.specs import Catalog, SuiteSpec
from harness.storage import SuiteSummary
from harness_board.document import Board, System, TaskColumn, created_on, run_systems, run_tasks
from harness_board.published import (
    SystemMetadata,
    catalog_tasks,
    published_metadata,
    published_systems,
    read_scores,
    table_systems,
)
from harness_board.repository_runs import StoredResults

SAME_SCORE = 1e-9
"""Points by which two scores of the same answers may differ."""
Means = Iterator[tuple[str, float | None, float, str]]
"""Name of a mean, its value over the published languages, its value over all, and the added languages."""


def gather(
    *,
    runs: Sequence[Run] = (),
    stored: StoredResults | None = None,
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
        stored: A results repository.
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
    _require_source(runs, stored, published, scores)
    _require_common_task(runs, checklists := checklist_sections(runs))
    stored = stored or StoredResults()
    columns, systems = _evaluated(runs, stored)
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
        systems=tuple(_distinct(_described(_starred(systems), [*metadata, *stored.metadata]))),
        languages=_languages(tasks),
        suite=name,
        categories={key: tuple(names) for key, names in suite.categories.items()} if suite else {},
        extended=extension_section(runs),
        checklists=checklists,
        equity=equity_report(runs),
        date=max((*(created_on(run.results.run.created) for run in runs), *stored.dates), default=None),
    )


def _require_source(
    runs: Sequence[Run], stored: StoredResults | None, published: str | None, scores: Sequence[Path]
) -> None:
    if not runs and stored is None and published is None and not scores:
        raise UsageError(
            "A board needs runs, --from REPO, --from-published SUITE or --from-scores FILE; found none of them.",
            hint="Try: harness board --from-published xtreme_r -o board.html",
        )


def _evaluated(runs: Sequence[Run], stored: StoredResults) -> tuple[dict[str, TaskColumn], list[System]]:
    """Return the tasks and systems of runs, and of a results repository."""
    columns: dict[str, TaskColumn] = {}
    for task in (*(task for run in runs for task in run_tasks(run)), *stored.columns):
        columns[task.task] = _united(columns.get(task.task), task)
    systems = [system for run in runs for system in run_systems(run)]
    return columns, _united_baselines([*systems, *stored.systems])


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
    every = (score for system in systems for score in system.scores)
    scores = grouped((score.task, score) for score in every if score.task not in columns)
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
    stated, described = [*metadata, *published_metadata()], []
    for system in systems:
        about = next((item for item in stated if {system.label, system.path} & set(item.names)), None)
        if about is None:
            described.append(system)
            continue
        label, year = about.label or system.label, about.year or system.year
        fields = {**system.metadata, **about.plain()}
        described.append(replace(system, label=label, year=year, metadata=fields))
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
    names = ("label", "path", "protocol", "view", "adapter")
    if one.adapter != "baseline" or any(getattr(one, name) != getattr(other, name) for name in names):
        return False
    first, second = (
        {(own.task, own.metric, code): v for own in system.scores for code, v in own.by_language.items()}
        for system in (one, other)
    )
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
    starred = (
        [replace(own, is_starred=own.reason != usual[own.task]) for own in each.scores] for each in systems
    )
    return [replace(system, scores=tuple(scores)) for system, scores in zip(systems, starred, strict=True)]


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
        about[code] = {"name": code, "family": "unknown", "script": "unknown"}
        if code in table:
            about[code] = {name: getattr(table.get(code), name) for name in about[code]}
    return about | {code: described for column in columns for code, described in column.described.items()}


def extension_section(runs: Sequence[Run]) -> Section | None:
    """Return the means of suites and tasks with added languages, next to those without them; None without any."""
    rows = [
        (run.manifest.model_name, name, percent(published), f"{percent(extended)}{ADDED}", languages)
        for run in runs
        for name, published, extended, languages in [*_of_suites(run), *_of_tasks(run)]
    ]
    title = "Means with the languages that others added; not comparable with published scores"
    heads = ("system", "mean of", "published languages", f"with added ones {ADDED}", "added")
    table = make_table(title, heads, rows, words={0, 3})
    return Section(name="extended", title="With added languages", blocks=[table]) if rows else None


def _of_suites(run: Run) -> Means:
    for row in run.results.suites:
        extended = row.extended
        if extended is not None and extended.paper.value is not None:
            added = "; ".join(f"{task} {' '.join(codes)}" for task, codes in extended.languages.items())
            yield f"suite {row.suite}", row.paper.value, extended.paper.value, added


def _of_tasks(run: Run) -> Means:
    for row in run.results.tasks:
        added = [code for code in row.by_language if is_added(code, run.manifest.tasks[row.task])]
        if added and row.headline:
            published = [value for code, value in row.by_language.items() if code not in added]
            name = f"{row.task} ({metric_name(row.metric)}) {conditions_of(row.view)}".rstrip()
            mean = sum(published) / len(published) if published else None
            yield name, mean, row.value, " ".join(added)


def equity_section(
    report: EquityReport | None, *, task: str | None = None, language: str | None = None
) -> Section | None:
    """Return the table over all tasks, or over one, of all languages, or of one; None where nothing was counted.

    Args:
        report: Of the board's runs.
        task: The task that the page is about; each way in which a system ran it is a system of its own there.
        language: The language that the page is about.
    """
    if report is None:
        return None
    tables = [table for table in report.tables if table.task == task] if task else list(report.overall)
    if not any(language in {None, row.code} for table in tables for row in table.rows):
        return None
    systems = [table.system for table in tables]
    ways = [
        f"{table.system} ({table.protocol} {table.method} {table.view}".rstrip() + ")" for table in tables
    ]
    names = [way if systems.count(system) > 1 else system for way, system in zip(ways, systems, strict=True)]
    block = side_table(f"Of {task or 'all tasks'}, by system", tables, names, language=language)
    block = replace(block, notes=(*side_notes(tables), *SIDE_LEGEND))
    return Section(name="equity", title="What the languages cost", blocks=[block])


def checklist_sections(runs: Sequence[Run]) -> dict[str, tuple[Section, ...]]:
    """Return the checklist sections of runs, by task; other tasks have no entry."""
    sections: dict[str, tuple[Section, ...]] = {}
    for run in runs:
        for matrix in matrices(run):
            if matrix.heat:
                task = matrix.title.partition(" ")[0]
                title = f"{run.manifest.model_name}: errors by language and test"
                section = Section(name="checklist", title=title, blocks=list(_errors(run, task, matrix)))
                sections[task] = (*sections.get(task, ()), section)
    return sections


def _errors(run: Run, task: str, matrix: Matrix) -> Iterator[Block]:
    """Yield the error rates of a checklist, and what plugins show of it."""
    yield error_table(matrix)
    for section, report in read_sections([run], installed_sections()).items():
        if (of_task := report.of_task(task)) is not None:
            yield Notes(of_task.notes)
            yield from [Fold(title=section.title, blocks=of_task.blocks)] if of_task.blocks else []
