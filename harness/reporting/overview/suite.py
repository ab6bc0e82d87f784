"""The overall scores of suites, as small tables: models against categories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.reporting.blocks.number import uncertainty
from harness.reporting.blocks.score import Score
from harness.reporting.overview.grouping import list_names
from harness.reporting.overview.item_origin import ADDED
from harness.reporting.overview.mean_row import OTHER_CELLS
from harness.reporting.overview.published import NOT_COMPARABLE, is_shown_in_suite, published_label
from harness.reporting.overview.unreadable import WITH_UNREADABLE, is_unreadable
from harness.scores.suites import overall, task_scores
from harness.storage.results import CellResult, SuiteScore, SuiteSummary, TaskSummary
from harness.storage.run_folder import Run

UNREADABLE_NOTE = "with unreadable cells, which say nothing about the task"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteTable:
    """The overall and category scores of one suite under one protocol."""

    name: str
    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Score, ...]], ...]
    notes: tuple[str, ...]


def suite_tables(runs: Sequence[Run], published: Sequence[Mapping[str, Any]]) -> tuple[SuiteTable, ...]:
    """Return a table for every suite row of the first run, the others' and the published scores under it."""
    return tuple(_table(row, runs, published) for row in runs[0].results.suites)


def suite_row(run: Run, row: SuiteScore) -> SuiteScore | None:
    """Return the scores of a run in the suite and under the conditions of a row; None where it has none."""
    key = (row.suite, row.protocol, row.view)
    return next(
        (
            candidate
            for candidate in run.results.suites
            if (candidate.suite, candidate.protocol, candidate.view) == key
        ),
        None,
    )


def _table(row: SuiteScore, runs: Sequence[Run], published: Sequence[Mapping[str, Any]]) -> SuiteTable:
    [suite] = [item for item in runs[0].manifest.suites if item.suite == row.suite]
    rows: list[tuple[str, tuple[Score, ...]]] = []
    first, notes = _included(runs[0], row), _notes(row, suite)
    if unreadable := _unreadable(first):
        notes.append(f"{WITH_UNREADABLE} {UNREADABLE_NOTE}: {', '.join(unreadable)}.")
    for run in runs:
        name, score, cells = run.manifest.model_name, suite_row(run, row), _included(run, row)
        scores = _scores(score, suite.categories, _unreadable(cells))
        if difference := "" if run is runs[0] else _difference(name, score, _items(cells), _items(first)):
            notes.append(difference)
            scores = tuple(map(_other, scores))
        rows.append((name, scores))
        if extended := _extended(score, suite.categories):
            rows.append((f"{name} {ADDED}", extended))
    overall_scores = published_overall(published, suite, row, runs[0].manifest.tasks)
    rows += [pair for pair in overall_scores.items() if any(score.value is not None for score in pair[1])]
    view = "".join(f", {name}={value}" for name, value in sorted(row.view.items()))
    return SuiteTable(
        name=row.suite,
        title=f"Suite {row.suite} ({row.protocol}{view})",
        heads=("overall", "flat", *(name.replace("_", " ") for name in suite.categories)),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _included(run: Run, row: SuiteScore) -> list[CellResult]:
    """Return the cells that a row of suites may include."""
    return [
        cell
        for cell in run.cells
        if cell.status == "ok"
        and cell.task in row.tasks
        and cell.protocol == row.protocol
        and cell.view.get("variant") == row.view.get("variant")
    ]


def _items(cells: Sequence[CellResult]) -> dict[tuple[str, str], tuple[int, str | None]]:
    """Return the number of items and the data of every task and language."""
    return {(cell.task, cell.language): (cell.n, cell.data.get("digest")) for cell in cells}


def _difference(
    name: str,
    score: SuiteScore | None,
    items: Mapping[tuple[str, str], tuple[int, str | None]],
    firsts: Mapping[tuple[str, str], tuple[int, str | None]],
) -> str:
    """Return why a further run's row cannot be compared with the first run's; empty where it can."""
    if score is None:
        return f"{name} has no score of this suite under this protocol and these conditions."
    differing = {task for (task, _), _ in items.items() ^ firsts.items()}
    tasks = list_names(task for task, _ in [*firsts, *items] if task in differing)
    return tasks and f"~ {name}: over other languages, items or data than the first row in {tasks}."


def _other(score: Score) -> Score:
    return score if score.value is None or "~" in score.mark else replace(score, mark=f"{score.mark}~")


def _unreadable(cells: Sequence[CellResult]) -> list[str]:
    return list(dict.fromkeys(cell.task for cell in cells if is_unreadable(cell)))


def _scores(
    row: SuiteScore | None, categories: Mapping[str, Sequence[str]], unreadable: Sequence[str]
) -> tuple[Score, ...]:
    if row is None:
        return (Score(),) * (len(categories) + 2)
    paper, flat, mark = row.paper, row.flat, "" if row.complete else "~"
    return tuple(
        _score(value, mark if set(unreadable).isdisjoint(tasks) else mark + WITH_UNREADABLE, interval)
        for value, interval, tasks in (
            (paper.value, paper.ci, unreadable),
            (flat.value, flat.ci, unreadable),
            *(
                (paper.categories[name], paper.category_intervals.get(name), categories[name])
                for name in categories
            ),
        )
    )


def _score(value: float | None, mark: str, interval: tuple[float, float] | None = None) -> Score:
    return Score() if value is None else Score(value=value, interval=interval, mark=mark)


def _extended(row: SuiteScore | None, categories: Iterable[str]) -> tuple[Score, ...]:
    """Return the scores with added languages, without categories in older runs; empty where there are none."""
    if row is None or (extended := row.extended) is None:
        return ()
    values = [extended.paper.value, extended.flat.value, *map(extended.categories.get, categories)]
    return (
        tuple(_score(value, ADDED) for value in values) if any(value is not None for value in values) else ()
    )


def published_overall(
    published: Sequence[Mapping[str, Any]],
    suite: SuiteSummary,
    row: SuiteScore,
    specs: Mapping[str, TaskSummary],
) -> dict[str, tuple[Score, ...]]:
    """Return by label the overall, flat and category scores of published systems, marked next to a partial row."""
    mark = "" if row.complete else OTHER_CELLS
    return {
        published_label(item, {str(row.protocol)}): _published(item, suite, specs, mark)
        for item in published
        if is_shown_in_suite(item, suite, str(row.protocol), row.view)
    }


def _published(
    item: Mapping[str, Any], suite: SuiteSummary, specs: Mapping[str, TaskSummary], mark: str
) -> tuple[Score, ...]:
    printed = item["scores"]
    declared = {
        task: specs[task].headline if task in specs else [*printed.get(task, {})] for task in suite.tasks
    }
    headlines = {task: suite.headline(task, metrics) for task, metrics in declared.items()}
    scores = overall(task_scores(printed, headlines), suite.tasks, suite.categories)
    entries = [(scores.paper, suite.tasks), (scores.flat, suite.tasks)]
    entries += [(scores.categories[name], tasks) for name, tasks in suite.categories.items()]
    return tuple(
        _score(value and value / 100, mark + NOT_COMPARABLE * bool(set(item["comparable"]) & set(tasks)))
        for value, tasks in entries
    )


def _notes(row: SuiteScore, suite: SuiteSummary) -> list[str]:
    flat = f"flat: the mean of the suite's {len(suite.tasks)} task scores, each over all metrics that count"
    count = len(suite.categories)
    notes = [
        f"overall: the mean of the {count} categories; {flat}." if count else f"{flat}; it has no categories."
    ]
    if row.missing:
        has = "has" if len(row.missing) == 1 else "have"
        notes.append(f"No overall score: {', '.join(row.missing)} {has} none.")
    counts = [(task, count["languages"], count["of"]) for task, count in row.tasks.items()]
    if fewer := ", ".join(f"{task} {number}/{of}" for task, number, of in counts if number < of):
        notes.append(
            f"~ over fewer languages than the suite has, not comparable with published scores: {fewer}."
        )
    if row.extended is not None and _extended(row, suite.categories):
        added = "; ".join(f"{task} {' '.join(codes)}" for task, codes in row.extended.languages.items())
        text = f"{ADDED} with languages that others added, not comparable with published scores"
        notes.append(f"{text}{added and ': '}{added}.")
    intervals = ", ".join(
        f"{name} {uncertainty(score.value, score.ci)}"
        for name, score in (("overall", row.paper), ("flat", row.flat))
        if score.value is not None and score.ci is not None
    )
    if intervals:
        notes.append(f"95 % interval (± half of it), tasks taken as independent: {intervals}.")
    return notes
