"""From cells to task scores: unweighted means over languages, by family and script, and the transfer gap.

XTREME-R scores a task by the unweighted mean over its test languages, English included where it is one of them
(Ruder et al. 2021, Tables 15-24). The transfer gap is the source language's score minus the mean of the others
(section 4.2). A mean over fewer languages than the task has is marked: it never passes as the task's score.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

__all__ = ["aggregate_tasks", "cell_value", "headline_value"]

Group = tuple[str, str, str, str]


def cell_value(cell: Mapping[str, Any], metric: str) -> float | None:
    """Return the value of a metric in a cell of ``results.json``, or None where it has none."""
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

    Seeds of one language are averaged first. `specs` holds by task what `harness.running.spec_summary` returns.
    """
    groups: dict[Group, list[Mapping[str, Any]]] = {}
    missing: dict[str, set[str]] = {}
    for cell in cells:
        if cell["status"] == "ok" and cell["metrics"]:
            view = json.dumps(cell["view"], sort_keys=True)
            groups.setdefault((cell["task"], cell["protocol"], cell["method"], view), []).append(cell)
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


def _row(cells: Sequence[Mapping[str, Any]], metric: str, spec: Mapping[str, Any]) -> dict[str, Any] | None:
    by_language: dict[str, list[float]] = {}
    for cell in cells:
        value = cell_value(cell, metric)
        if value is not None:
            by_language.setdefault(cell["language"], []).append(value)
    if not by_language:
        return None
    means = {language: fmean(values) for language, values in by_language.items()}
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
        "languages": len(means),
        "by_family": _by(means, families),
        "by_script": _by(means, scripts),
        "transfer_gap": gap,
        "seeds": max(len(values) for values in by_language.values()),
        "seed_sd": _seed_spread(by_language),
    }


def _by(means: Mapping[str, float], groups: Mapping[str, str]) -> dict[str, float]:
    members: dict[str, list[float]] = {}
    for language, value in means.items():
        members.setdefault(groups[language], []).append(value)
    return {group: fmean(values) for group, values in sorted(members.items())}


def _seed_spread(by_language: Mapping[str, Sequence[float]]) -> float | None:
    """Return the standard deviation over seeds of the mean over languages, where all have the same seeds."""
    counts = {len(values) for values in by_language.values()}
    if counts == {1} or len(counts) > 1:
        return None
    return stdev(fmean(column) for column in zip(*by_language.values(), strict=True))
