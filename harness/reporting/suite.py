"""The overall scores of suites, as small tables: models against categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.metrics.suites import overall, task_scores
from harness.reporting.item_origin import ADDED
from harness.reporting.number import uncertainty
from harness.reporting.score import Score, interval_of
from harness.reporting.unreadable import WITH_UNREADABLE, is_unreadable
from harness.storage.run_folder import Run

__all__ = ["SuiteTable", "published_rows", "suite_tables"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteTable:
    """The overall and category scores of one suite under one protocol."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Score, ...]], ...]
    notes: tuple[str, ...]


def suite_tables(runs: Sequence[Run], published: Sequence[Mapping[str, Any]]) -> tuple[SuiteTable, ...]:
    """Return a table for every suite row of the first run, the others' and the published scores under it."""
    return tuple(_table(row, runs, published) for row in runs[0].results["suites"])


def _table(row: Mapping[str, Any], runs: Sequence[Run], published: Sequence[Mapping[str, Any]]) -> SuiteTable:
    [suite] = [item for item in runs[0].manifest["suites"] if item["suite"] == row["suite"]]
    categories = list(suite["categories"])
    rows, others = [], []
    for run in runs:
        found = _same(run.results["suites"], row)
        name = run.manifest["model"].removeprefix("baseline:")
        difference = (
            "" if run is runs[0] else _difference(name, found, _cells(run, row), _cells(runs[0], row))
        )
        others += [difference] if difference else []
        unreadable = _unreadable(run, row)
        scores = _scores(found, suite["categories"], unreadable)
        rows.append((name, tuple(_other(score) for score in scores) if difference else scores))
        if found is not None and _is_extended(found):
            rows.append((f"{name} {ADDED}", _extended_scores(found["extended"], categories)))
    if not row["view"]:
        rows += [
            (f"published {item['label']}", _published(item, suite, runs[0].manifest["tasks"]))
            for item in published
            if item["suite"] == row["suite"] and item["protocol"] in {row["protocol"], "human"}
        ]
    view = "".join(f", {name}={value}" for name, value in sorted(row["view"].items()))
    return SuiteTable(
        title=f"Suite {row['suite']} ({row['protocol']}{view})",
        heads=("overall", "flat", *(name.replace("_", " ") for name in categories)),
        rows=tuple(rows),
        notes=(*_notes(row, suite), *_unreadable_notes(runs[0], row), *others),
    )


def _same(rows: Sequence[Mapping[str, Any]], wanted: Mapping[str, Any]) -> Mapping[str, Any] | None:
    keys = ("suite", "protocol", "view")
    return next((row for row in rows if all(row[key] == wanted[key] for key in keys)), None)


def _cells(run: Run, row: Mapping[str, Any]) -> dict[tuple[str, str], tuple[int, str | None]]:
    """Return the number of items and the data of every task and language that a row of suites may include."""
    return {
        (cell["task"], cell["language"]): (cell["n"], (cell.get("data") or {}).get("digest"))
        for cell in run.cells
        if cell["status"] == "ok"
        and (cell["task"], cell["protocol"]) in {(task, row["protocol"]) for task in row["tasks"]}
        and cell["view"].get("variant") == row["view"].get("variant")
    }


def _difference(
    name: str,
    found: Mapping[str, Any] | None,
    own: Mapping[tuple[str, str], tuple[int, str | None]],
    firsts: Mapping[tuple[str, str], tuple[int, str | None]],
) -> str:
    """Return why a further run's row cannot be compared with the first run's; empty where it can."""
    if found is None:
        return f"{name} has no score of this suite under this protocol and these conditions."
    if own == firsts:
        return ""
    tasks = dict.fromkeys(task for task, _ in [*firsts, *own])
    differing = [
        task
        for task in tasks
        if {key: cell for key, cell in own.items() if key[0] == task}
        != {key: cell for key, cell in firsts.items() if key[0] == task}
    ]
    return f"~ {name}: over other languages, items or data than the first row in {', '.join(differing)}."


def _other(score: Score) -> Score:
    return score if score.value is None or "~" in score.mark else replace(score, mark=f"{score.mark}~")


def _unreadable(run: Run, row: Mapping[str, Any]) -> list[str]:
    """Return the tasks of a suite's row that have an unreadable cell."""
    included = _cells(run, row)
    found = [
        cell for cell in run.cells if (cell["task"], cell["language"]) in included and is_unreadable(cell)
    ]
    return list(dict.fromkeys(cell["task"] for cell in found if cell["protocol"] == row["protocol"]))


def _unreadable_notes(run: Run, row: Mapping[str, Any]) -> list[str]:
    tasks = _unreadable(run, row)
    if not tasks:
        return []
    return [f"{WITH_UNREADABLE} with unreadable cells, which say nothing about the task: {', '.join(tasks)}."]


def _scores(
    row: Mapping[str, Any] | None, categories: Mapping[str, Sequence[str]], unreadable: Sequence[str]
) -> tuple[Score, ...]:
    if row is None:
        return (Score(),) * (len(categories) + 2)
    mark = "" if row["complete"] else "~"
    readable = [not unreadable] * 2 + [not set(tasks) & set(unreadable) for tasks in categories.values()]
    values = [row["paper"]["value"], row["flat"]["value"]]
    intervals = [interval_of(row["paper"]), interval_of(row["flat"]), *[None] * len(categories)]
    values += [row["paper"]["categories"][name] for name in categories]
    return tuple(
        Score()
        if value is None
        else Score(value=value, interval=interval, mark=mark if is_readable else f"{mark}{WITH_UNREADABLE}")
        for value, interval, is_readable in zip(values, intervals, readable, strict=True)
    )


def _is_extended(row: Mapping[str, Any]) -> bool:
    extended = row["extended"]
    if extended is None:
        return False
    values = [extended["paper"]["value"], extended["flat"]["value"], *extended.get("categories", {}).values()]
    return any(value is not None for value in values)


def _extended_scores(extended: Mapping[str, Any], categories: Sequence[str]) -> tuple[Score, ...]:
    """Return the scores with added languages; those of older runs have no categories."""
    known = extended.get("categories", {})
    values = [extended["paper"]["value"], extended["flat"]["value"], *map(known.get, categories)]
    return tuple(Score() if value is None else Score(value=value, mark=ADDED) for value in values)


def _published(
    item: Mapping[str, Any], suite: Mapping[str, Any], specs: Mapping[str, Any]
) -> tuple[Score, ...]:
    headlines = {
        task: specs.get(task, {}).get("headline", list(item["scores"].get(task, {})))
        for task in suite["tasks"]
    }
    scores = task_scores(item["scores"], headlines)
    found = overall(scores, suite["tasks"], suite["categories"])
    values = [found.paper, found.flat, *(found.categories[name] for name in suite["categories"])]
    mark = "°" if set(item["comparable"]) & set(suite["tasks"]) else ""
    marks = [
        mark,
        mark,
        *("°" if set(item["comparable"]) & set(tasks) else "" for tasks in suite["categories"].values()),
    ]
    return tuple(
        Score() if value is None else Score(value=value / 100, mark=mark)
        for value, mark in zip(values, marks, strict=True)
    )


def _notes(row: Mapping[str, Any], suite: Mapping[str, Any]) -> list[str]:
    notes = [
        f"overall: the mean of the {len(suite['categories'])} categories; flat: the mean of the "
        f"{len(suite['tasks'])} tasks."
    ]
    if row["missing"]:
        notes.append(
            f"No overall score: {', '.join(row['missing'])} {'has' if len(row['missing']) == 1 else 'have'} none."
        )
    fewer = [
        f"{task} {count['languages']}/{count['of']}"
        for task, count in row["tasks"].items()
        if count["languages"] < count["of"]
    ]
    if fewer:
        notes.append(
            f"~ over fewer languages than the suite has, not comparable with published scores: {', '.join(fewer)}."
        )
    if _is_extended(row):
        added = row["extended"].get("languages", {})
        named = "; ".join(f"{task} {' '.join(codes)}" for task, codes in added.items())
        notes.append(
            f"{ADDED} with languages that others added, not comparable with published scores{named and ': '}{named}."
        )
    intervals = [
        f"{name} {uncertainty(row[key]['value'], interval)}"
        for name, key in (("overall", "paper"), ("flat", "flat"))
        if (interval := interval_of(row[key])) is not None
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
