"""From cells to task scores: unweighted means over languages, by family and script, and the transfer gap.

XTREME-R scores a task by the unweighted mean over its test languages, English included where it is one of them
(Ruder et al. 2021, Tables 15-24). The transfer gap is the source language's score minus the mean of the others
(section 4.2). A mean over fewer languages than the task has is marked: it never passes as the task's score.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from harness.metrics.suites import Overall, overall
from harness.statistics import Interval, independent_mean

__all__ = ["aggregate_suites", "aggregate_tasks", "cell_value", "cells_of_row", "headline_value"]

Group = tuple[str, str, str, str]
NORMAL = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


def cell_value(cell: Mapping[str, Any], metric: str) -> float | None:
    """Return the value of a metric in a cell of ``results.json``, or None where the cell has no such metric."""
    found = cell["metrics"].get(metric)
    return None if found is None else float(found["value"])


def headline_value(cell: Mapping[str, Any], metrics: Sequence[str]) -> float | None:
    """Return the mean of a cell's headline metrics, or None where one of them is missing."""
    values = [cell_value(cell, metric) for metric in metrics]
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def aggregate_tasks(
    cells: Iterable[Mapping[str, Any]], specs: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return one row for every task, protocol, method, view and metric, in the order of the cells.

    Seeds of one language are averaged first. `specs` holds the spec summary of each task.
    """
    groups: dict[Group, list[Mapping[str, Any]]] = {}
    missing: dict[str, set[str]] = {}
    for cell in cells:
        if _is_scored(cell):
            groups.setdefault(_group(cell), []).append(cell)
        else:
            missing.setdefault(cell["task"], set()).add(cell["language"])
    rows = []
    for (task, protocol, method, view), members in groups.items():
        for metric in specs[task]["metrics"]:
            row = _row(members, metric, specs[task])
            if row is not None:
                identity = {"task": task, "protocol": protocol, "method": method, "view": json.loads(view)}
                present = {cell["language"] for cell in members}
                rows.append({**identity, **row, "missing": sorted(missing.get(task, set()) - present)})
    return rows


def cells_of_row(
    row: Mapping[str, Any], cells: Iterable[Mapping[str, Any]]
) -> dict[str, list[Mapping[str, Any]]]:
    """Return the cells whose mean a row of `aggregate_tasks` is, by language: one for each seed."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for cell in cells:
        if _is_scored(cell) and _group(cell) == _group(row) and row["metric"] in cell["metrics"]:
            found.setdefault(cell["language"], []).append(cell)
    return found


def _is_scored(cell: Mapping[str, Any]) -> bool:
    return cell["status"] == "ok" and bool(cell["metrics"])


def _group(item: Mapping[str, Any]) -> Group:
    return (item["task"], item["protocol"], item["method"], json.dumps(item["view"], sort_keys=True))


def _row(cells: Sequence[Mapping[str, Any]], metric: str, spec: Mapping[str, Any]) -> dict[str, Any] | None:
    by_language: dict[str, list[float]] = {}
    for cell in cells:
        value = cell_value(cell, metric)
        if value is not None:
            by_language.setdefault(cell["language"], []).append(value)
    if not by_language:
        return None
    means = {language: fmean(values) for language, values in by_language.items()}
    counts = {cell["language"]: cell.get("n", 0) for cell in cells}
    human = spec.get("human", {}).get(metric)
    published = spec.get("published_languages") or list(means)
    whole = set(published) <= set(means)
    source = spec["source"]
    others = [value for language, value in means.items() if language != source]
    gap = means[source] - fmean(others) if source in means and others else None
    families = {language: pair[0] for language, pair in spec["languages"].items()}
    scripts = {language: pair[1] for language, pair in spec["languages"].items()}
    return {
        "fit": sorted({str(cell["fit"]) for cell in cells}),
        "metric": metric,
        "headline": metric in spec["headline"],
        "value": fmean(means.values()),
        **_interval(cells, metric, fmean(means.values()), linked=bool(spec.get("parallel"))),
        "micro": _weighted([(value, counts[language]) for language, value in means.items()]),
        "languages": len(means),
        "by_language": means,
        "by_family": _by(means, families),
        "by_script": _by(means, scripts),
        "transfer_gap": gap,
        "human_gap": None if human is None or not whole else human - fmean(means[code] for code in published),
        **_by_group(cells, metric, spec),
        "seeds": max(len(values) for values in by_language.values()),
        "seed_sd": _seed_spread(by_language),
    }


def _interval(
    cells: Sequence[Mapping[str, Any]], metric: str, value: float, *, linked: bool
) -> dict[str, Any]:
    """Return the interval of a mean over languages as far as it follows from the cells' own intervals.

    Items of parallel languages are drawn jointly, and those of several seeds are the same: both need the records, and
    are left to `harness.metrics.task_intervals`.
    """
    own = [cell["metrics"][metric] for cell in cells if metric in cell["metrics"]]
    languages = {cell["language"] for cell in cells if metric in cell["metrics"]}
    parts = [Interval.from_json(kept) for kept in own]
    if len(own) == 1:
        return parts[0].to_json()
    if linked or len(own) > len(languages):
        return Interval(se=None, low=None, high=None, method=None).to_json()
    return independent_mean(parts, value).to_json()


def _by(means: Mapping[str, float], groups: Mapping[str, str]) -> dict[str, float]:
    members: dict[str, list[float]] = {}
    for language, value in means.items():
        members.setdefault(groups[language], []).append(value)
    return {group: fmean(values) for group, values in sorted(members.items())}


def _weighted(values: Sequence[tuple[float, int]]) -> float | None:
    """Return the mean over all items (the micro average), or None where the numbers of items are not known."""
    total = sum(count for _, count in values)
    return sum(value * count for value, count in values) / total if total else None


def _by_group(cells: Sequence[Mapping[str, Any]], metric: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the matrix of a metric that is given by group, language of the cell x group, and its two halves.

    `same_language` takes the fields whose group is the cell's own language, `cross_language` the others, each as
    the mean of its fields (macro) and over all their observations (micro), as in XTREME-R's Table 14. Where no
    group is a language of the task, as with the tests of a checklist, there are no halves.
    """
    observed: dict[str, dict[str, list[tuple[float, int]]]] = {}
    bounds: dict[tuple[str, str], dict[str, Any]] = {}
    for cell in cells:
        for group, score in cell["metrics"].get(metric, {}).get("groups", {}).items():
            row = observed.setdefault(cell["language"], {})
            row.setdefault(group, []).append((score["value"], score["n"]))
            if len(row[group]) == 1 and "ci" in score:
                bounds[cell["language"], group] = {name: score[name] for name in ("se", "ci", "ci_method")}
            else:  # several seeds: the interval of one is not that of their mean
                bounds.pop((cell["language"], group), None)
    if not observed:
        return {}
    fields = {
        (language, group): (fmean(value for value, _ in scores), scores[0][1])
        for language, row in observed.items()
        for group, scores in row.items()
    }
    of_languages = not {group for _, group in fields}.isdisjoint(spec["languages"])
    fields_of_halves = fields if of_languages else {}
    halves = {
        "same_language": [pair for (language, group), pair in fields_of_halves.items() if language == group],
        "cross_language": [pair for (language, group), pair in fields_of_halves.items() if language != group],
    }
    return {
        "matrix": {
            language: {
                group: {
                    **dict(zip(("value", "n"), fields[language, group], strict=True)),
                    **bounds.get((language, group), {}),
                }
                for group in row
            }
            for language, row in observed.items()
        },
        **{
            name: {"macro": fmean(value for value, _ in half), "micro": _weighted(half)} if half else None
            for name, half in halves.items()
        },
    }


def _seed_spread(by_language: Mapping[str, Sequence[float]]) -> float | None:
    """Return the standard deviation over seeds of the mean over languages, where all have the same seeds."""
    counts = {len(values) for values in by_language.values()}
    if counts == {1} or len(counts) > 1:
        return None
    return stdev(fmean(column) for column in zip(*by_language.values(), strict=True))


def aggregate_suites(
    rows: Iterable[Mapping[str, Any]], suites: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the overall scores of every suite, for its own protocol and for others in which no task is missing.

    Views are never mixed: there is one row for each view that some task of the suite was run in. A task counts with
    its published languages; `extended` takes those that fragments added too. `tasks` says over how many of them: a
    suite is `complete` only where no language is missing either.

    Args:
        rows: What `aggregate_tasks` returned.
        suites: What `harness.running.summaries.suite_summaries` returned.
    """
    rows = list(rows)
    found = []
    for suite in suites:
        headline = [
            {**row, "view": own}
            for row in rows
            if row["headline"] and row["task"] in suite["tasks"]
            if (own := _suite_view(suite, row)) is not None
        ]
        conditions = dict.fromkeys((row["protocol"], json.dumps(row["view"])) for row in headline)
        for protocol, view in conditions:
            members = [
                row for row in headline if (row["protocol"], json.dumps(row["view"])) == (protocol, view)
            ]
            row = _suite_row(suite, members)
            # A variant that only some tasks have makes no suite of its own next to the usual one.
            is_usual = protocol == suite["protocol"] and (view == "{}" or (protocol, "{}") not in conditions)
            if is_usual or not row["missing"]:
                found.append({"suite": suite["suite"], "protocol": protocol, "view": json.loads(view), **row})
    return found


def _suite_view(suite: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the view of a row without what the suite fixes for its task; None for a row with other values of that."""
    fixed = suite.get("views", {}).get(row["task"], {})
    view = dict(row["view"])
    if any(view.pop(name, None) != value for name, value in fixed.items()):
        return None
    return view


def _suite_row(suite: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    by_task: dict[str, list[dict[str, float]]] = {}
    for row in rows:
        by_task.setdefault(row["task"], []).append(row["by_language"])
    published = {
        task: [{code: by[code] for code in suite["languages"][task] if code in by} for by in languages]
        for task, languages in by_task.items()
    }
    whole = _overall(suite, published)
    extended = _overall(suite, by_task)
    counts = {
        task: {"languages": min(map(len, languages)), "of": len(suite["languages"][task])}
        for task, languages in published.items()
    }
    errors = _task_errors(rows)
    own = {task: error for task, error in errors.items() if published[task] == by_task[task]}
    return {
        "paper": {"value": whole.paper, **_suite_interval(suite, whole, own), "categories": whole.categories},
        "flat": {"value": whole.flat, **_suite_interval(suite, whole, own, flat=True)},
        "extended": None
        if published == by_task
        else {
            "paper": {"value": extended.paper, **_suite_interval(suite, extended, errors)},
            "flat": {"value": extended.flat, **_suite_interval(suite, extended, errors, flat=True)},
            "categories": extended.categories,
            "languages": {
                task: sorted({code for by in languages for code in by} - set(suite["languages"][task]))
                for task, languages in by_task.items()
                if any(set(by) - set(suite["languages"][task]) for by in languages)
            },
        },
        "missing": list(whole.missing),
        "tasks": counts,
        "methods": {row["task"]: row["method"] for row in rows},
        "complete": not whole.missing and all(count["languages"] == count["of"] for count in counts.values()),
    }


def _task_errors(rows: Iterable[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the standard error of each task's score, which is the mean of its headline metrics.

    Metrics of one task are computed from the same answers: their mean has at most the mean of their errors. None
    where one of them has no error, unless all its items score the same.
    """
    found: dict[str, list[float | None]] = {}
    for row in rows:
        error = 0.0 if row.get("ci_method") == "constant" else row.get("se")
        found.setdefault(row["task"], []).append(error)
    return {
        task: None if None in errors else fmean(error for error in errors if error is not None)
        for task, errors in found.items()
    }


def _suite_interval(
    suite: Mapping[str, Any], scores: Overall, errors: Mapping[str, float | None], *, flat: bool = False
) -> dict[str, Any]:
    """Return the interval of a suite's score, whose tasks are taken as independent; None where one has no error."""
    value = scores.flat if flat else scores.paper
    groups = [suite["tasks"]] if flat else list(suite["categories"].values())
    weights = {task: 1 / (len(groups) * len(tasks)) for tasks in groups for task in tasks}
    known = [(weight, error) for task, weight in weights.items() if (error := errors.get(task)) is not None]
    if value is None or len(known) < len(weights):
        return Interval(se=None, low=None, high=None, method=None).to_json()
    se = math.sqrt(sum((weight * error) ** 2 for weight, error in known))
    low, high = max(0.0, value - NORMAL * se), min(1.0, value + NORMAL * se)
    return Interval(se=se, low=low, high=high, method="normal, tasks independent").to_json()


def _overall(suite: Mapping[str, Any], by_task: Mapping[str, Sequence[Mapping[str, float]]]) -> Overall:
    """Return the overall scores, a task's score being the mean over its languages and headline metrics."""
    scores = {
        task: fmean(fmean(by.values()) for by in languages) if all(languages) else None
        for task, languages in by_task.items()
    }
    return overall(scores, suite["tasks"], suite["categories"])
