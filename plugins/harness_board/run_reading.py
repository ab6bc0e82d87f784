"""Runs as systems of a board: one for every protocol and view that a run has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness import Run
from harness_board.addition import added_languages, described_languages, language_marks
from harness_board.document import Score, System, TaskColumn

__all__ = ["run_suite", "run_systems", "run_tasks"]

Condition = tuple[str, str]


def run_tasks(run: Run) -> list[TaskColumn]:
    """Return the tasks of a run, as its manifest describes them."""
    found = []
    for task, spec in run.manifest["tasks"].items():
        rows = [row for row in run.results["tasks"] if row["task"] == task]
        met = dict.fromkeys(code for row in rows for code in row.get("by_language", {}))
        found.append(
            TaskColumn(
                task=task,
                metrics=tuple(spec["metrics"]),
                headline=tuple(spec["headline"]),
                languages=tuple(spec.get("published_languages") or met),
                source=spec.get("source"),
                chance=_points(spec.get("chance")),
                added=added_languages(run, task),
                marks=language_marks(run, task),
                described=described_languages(run, task),
            )
        )
    return found


def run_suite(run: Run) -> Mapping[str, Any] | None:
    """Return the first suite of a run, or None."""
    suites: Sequence[Mapping[str, Any]] = run.manifest.get("suites", [])
    return suites[0] if suites else None


def run_systems(run: Run) -> list[System]:
    """Return the systems of a run; conditions that cross every language (an axis) are left to its report."""
    conditions: dict[Condition, list[Mapping[str, Any]]] = {}
    for row in run.results["tasks"]:
        if not set(row["view"]) & set(run.manifest["tasks"][row["task"]].get("axes", ())):
            key = (row["protocol"], json.dumps(row["view"], sort_keys=True))
            conditions.setdefault(key, []).append(row)
    cells = _cells(run)
    return [
        system for condition, rows in conditions.items() for system in _systems(run, condition, rows, cells)
    ]


def _systems(
    run: Run, condition: Condition, rows: Sequence[Mapping[str, Any]], cells: Mapping[Any, Mapping[str, Any]]
) -> Iterator[System]:
    """Yield one system, or one for each method where a task was run with several."""
    by_task: dict[str, set[str]] = {}
    for row in rows:
        by_task.setdefault(row["task"], set()).add(row["method"])
    methods = sorted({row["method"] for row in rows})
    several = any(len(found) > 1 for found in by_task.values())
    for chosen in [[method] for method in methods] if several else [methods]:
        protocol, view = condition
        kept = [row for row in rows if row["method"] in chosen]
        model = run.results["model"]
        yield System(
            label=run.manifest["model"],
            origin="run",
            protocol=protocol,
            method=" + ".join(chosen),
            adapter=model["adapter"],
            view=" ".join(f"{name}={value}" for name, value in sorted(json.loads(view).items())),
            run=run.results["run"]["id"],
            year=int(run.results["run"]["created"][:4]),
            scores=tuple(_score(row, run, cells) for row in kept),
            absences=_absences(run, protocol),
            metadata={"parameters": model["parameters"]} if model.get("parameters") else {},
        )


def _score(row: Mapping[str, Any], run: Run, cells: Mapping[Any, Mapping[str, Any]]) -> Score:
    spec = run.manifest["tasks"][row["task"]]
    key = (row["task"], row["protocol"], row["method"], json.dumps(row["view"], sort_keys=True))
    known = {code: cells.get((*key, code), {}).get(row["metric"]) or {} for code in row["by_language"]}
    expected = set(spec.get("published_languages", ()))
    # An error that the results keep is that of the mean over all languages, added ones included.
    own = not expected or set(row["by_language"]) <= expected
    low, high = (row.get("ci") if own else None) or (None, None)
    return Score(
        task=row["task"],
        metric=row["metric"],
        mean=_points(_mean(row, expected)),
        se=_points(row.get("se") if own else None),
        low=_points(low),
        high=_points(high),
        by_language={code: value * 100 for code, value in row["by_language"].items()},
        se_by_language={
            code: found["se"] * 100 for code, found in known.items() if found.get("se") is not None
        },
        interval_by_language={
            code: (found["ci"][0] * 100, found["ci"][1] * 100)
            for code, found in known.items()
            if found.get("ci")
        },
        is_whole=expected <= set(row["by_language"]),
        note=_stand_ins(row, run),
    )


def _stand_ins(row: Mapping[str, Any], run: Run) -> str:
    """Return the languages in which a score is of another split than test."""
    same = ("task", "protocol", "method", "view")
    codes = [
        cell["language"]
        for cell in run.cells
        if cell["status"] == "ok" and cell["stands_in"] and all(cell[name] == row[name] for name in same)
    ]
    return f"scored on another split than test: {' '.join(dict.fromkeys(codes))}" if codes else ""


def _mean(row: Mapping[str, Any], expected: set[str]) -> float | None:
    """Return the mean over the task's published languages: those that fragments added are not compared."""
    values = [value for code, value in row["by_language"].items() if code in expected]
    if not expected or len(values) == len(row["by_language"]):
        return float(row["value"])
    return float(sum(values) / len(values)) if values else None


def _points(value: float | None) -> float | None:
    return None if value is None else value * 100


def _cells(run: Run) -> dict[tuple[str, ...], Mapping[str, Any]]:
    """Return the metrics of cells that were run with one seed: an error over items is not one over seeds."""
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for cell in run.cells:
        if cell["status"] == "ok":
            view = json.dumps(cell["view"], sort_keys=True)
            key = (cell["task"], cell["protocol"], cell["method"], view, cell["language"])
            found.setdefault(key, []).append(cell["metrics"])
    return {key: metrics[0] for key, metrics in found.items() if len(metrics) == 1}


def _absences(run: Run, protocol: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for cell in run.cells:
        if cell["status"] != "ok" and cell.get("protocol") in {protocol, None}:
            reason = f"{cell['status']}: {cell['reason']}"
            found.setdefault(f"{cell['task']}:{cell['language']}", reason[:300])
    return found
