"""The overall scores of suites, as small tables: models against categories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.metrics.suites import overall, task_scores
from harness.reporting.item_origin import ADDED
from harness.reporting.number import uncertainty
from harness.reporting.score import Score
from harness.reporting.unreadable import WITH_UNREADABLE, is_unreadable
from harness.storage.results import CellResult, ExtendedScore, SuiteScore, SuiteSummary, TaskSummary
from harness.storage.run_folder import Run

__all__ = ["SuiteTable", "published_rows", "suite_tables"]

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


def _table(row: SuiteScore, runs: Sequence[Run], published: Sequence[Mapping[str, Any]]) -> SuiteTable:
    [suite] = [item for item in runs[0].manifest.suites if item.suite == row.suite]
    categories, first = suite.categories, _cells(runs[0], row)
    rows, others = [], []
    for run in runs:
        key = (row.suite, row.protocol, row.view)
        found = next((own for own in run.results.suites if (own.suite, own.protocol, own.view) == key), None)
        name = run.manifest.model.removeprefix("baseline:")
        difference = "" if run is runs[0] else _difference(name, found, _cells(run, row), first)
        others += [difference] if difference else []
        scores = _scores(found, categories, _unreadable(run, row))
        rows.append((name, tuple(map(_other, scores)) if difference else scores))
        if found is not None and (extended := _extended(found)) is not None:
            rows.append((f"{name} {ADDED}", _extended_scores(extended, list(categories))))
    if not row.view:
        shown = [
            (f"published {item['label']}", _published(item, suite, runs[0].manifest.tasks))
            for item in published
            if item["suite"] == row.suite and item["protocol"] in {row.protocol, "human"}
        ]
        rows += [
            (label, scores) for label, scores in shown if any(score.value is not None for score in scores)
        ]
    unreadable = _unreadable(runs[0], row)
    if unreadable:
        others.insert(0, f"{WITH_UNREADABLE} {UNREADABLE_NOTE}: {', '.join(unreadable)}.")
    view = "".join(f", {name}={value}" for name, value in sorted(row.view.items()))
    return SuiteTable(
        name=row.suite,
        title=f"Suite {row.suite} ({row.protocol}{view})",
        heads=("overall", "flat", *(name.replace("_", " ") for name in categories)),
        rows=tuple(rows),
        notes=(*_notes(row, suite), *others),
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


def _cells(run: Run, row: SuiteScore) -> dict[tuple[str, str], tuple[int, str | None]]:
    """Return the number of items and the data of every task and language that a row of suites may include."""
    return {
        (cell.task, cell.language): (cell.n, (cell.data or {}).get("digest")) for cell in _included(run, row)
    }


def _difference(
    name: str,
    found: SuiteScore | None,
    own: Mapping[tuple[str, str], tuple[int, str | None]],
    firsts: Mapping[tuple[str, str], tuple[int, str | None]],
) -> str:
    """Return why a further run's row cannot be compared with the first run's; empty where it can."""
    if found is None:
        return f"{name} has no score of this suite under this protocol and these conditions."
    differing = {task for (task, _), _ in own.items() ^ firsts.items()}
    if not differing:
        return ""
    tasks = [task for task in dict.fromkeys(task for task, _ in [*firsts, *own]) if task in differing]
    return f"~ {name}: over other languages, items or data than the first row in {', '.join(tasks)}."


def _other(score: Score) -> Score:
    return score if score.value is None or "~" in score.mark else replace(score, mark=f"{score.mark}~")


def _unreadable(run: Run, row: SuiteScore) -> list[str]:
    """Return the tasks of a suite's row that have an unreadable cell."""
    return list(dict.fromkeys(cell.task for cell in _included(run, row) if is_unreadable(cell)))


def _scores(
    row: SuiteScore | None, categories: Mapping[str, Sequence[str]], unreadable: Sequence[str]
) -> tuple[Score, ...]:
    if row is None:
        return (Score(),) * (len(categories) + 2)
    mark = "" if row.complete else "~"

    def score(value: float | None, interval: tuple[float, float] | None, tasks: Iterable[str]) -> Score:
        marks = mark + (WITH_UNREADABLE if set(tasks) & set(unreadable) else "")
        return Score() if value is None else Score(value=value, interval=interval, mark=marks)

    return (
        *(score(own.value, own.ci, unreadable) for own in (row.paper, row.flat)),
        *(
            score(row.paper.categories[name], row.paper.category_intervals.get(name), tasks)
            for name, tasks in categories.items()
        ),
    )


def _extended(row: SuiteScore) -> ExtendedScore | None:
    """Return the scores with added languages; None where there are none."""
    if (own := row.extended) is None:
        return None
    values = [own.paper.value, own.flat.value, *own.categories.values()]
    return own if any(value is not None for value in values) else None


def _extended_scores(extended: ExtendedScore, categories: Sequence[str]) -> tuple[Score, ...]:
    """Return the scores with added languages; those of older runs have no categories."""
    known = extended.categories
    values = [extended.paper.value, extended.flat.value, *map(known.get, categories)]
    return tuple(Score() if value is None else Score(value=value, mark=ADDED) for value in values)


def _published(
    item: Mapping[str, Any], suite: SuiteSummary, specs: Mapping[str, TaskSummary]
) -> tuple[Score, ...]:
    headlines = {
        task: suite.headline(
            task, specs[task].headline if task in specs else list(item["scores"].get(task, {}))
        )
        for task in suite.tasks
    }
    scores = task_scores(item["scores"], headlines)
    found = overall(scores, suite.tasks, suite.categories)
    values = [found.paper, found.flat, *(found.categories[name] for name in suite.categories)]
    parts = [suite.tasks] * 2 + list(suite.categories.values())
    return tuple(
        Score()
        if value is None
        else Score(value=value / 100, mark="°" if set(item["comparable"]) & set(tasks) else "")
        for value, tasks in zip(values, parts, strict=True)
    )


def _notes(row: SuiteScore, suite: SuiteSummary) -> list[str]:
    notes = [
        f"overall: the mean of the {len(suite.categories)} categories; flat: the mean of the "
        f"{len(suite.tasks)} tasks."
    ]
    if row.missing:
        notes.append(
            f"No overall score: {', '.join(row.missing)} {'has' if len(row.missing) == 1 else 'have'} none."
        )
    fewer = [
        f"{task} {count['languages']}/{count['of']}"
        for task, count in row.tasks.items()
        if count["languages"] < count["of"]
    ]
    if fewer:
        notes.append(
            f"~ over fewer languages than the suite has, not comparable with published scores: {', '.join(fewer)}."
        )
    if (extended := _extended(row)) is not None:
        named = "; ".join(f"{task} {' '.join(codes)}" for task, codes in extended.languages.items())
        notes.append(
            f"{ADDED} with languages that others added, not comparable with published scores{named and ': '}{named}."
        )
    intervals = [
        f"{name} {uncertainty(own.value, own.ci)}"
        for name, own in (("overall", row.paper), ("flat", row.flat))
        if own.value is not None and own.ci is not None
    ]
    if intervals:
        notes.append(f"95 % interval (± half of it), tasks taken as independent: {', '.join(intervals)}.")
    return notes


def published_rows(
    published: Sequence[Mapping[str, Any]], columns: Sequence[tuple[str, str, str, str]]
) -> list[tuple[str, tuple[Score, ...]]]:
    """Return one row for every published system; columns are (task, protocol, view, metric).

    ``°`` marks a number that the document calls not comparable.
    """
    rows = []
    for item in published:
        scores = []
        for task, protocol, view, metric in columns:
            value = item["scores"].get(task, {}).get(metric)
            if value is None or view or item["protocol"] not in {protocol, "human"}:
                scores.append(Score())
            else:
                scores.append(Score(value=value / 100, mark="°" if task in item["comparable"] else ""))
        if any(score.value is not None for score in scores):
            rows.append((f"published {item['label']}", tuple(scores)))
    return rows
