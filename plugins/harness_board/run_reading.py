"""Runs as systems of a board: one for every protocol and view that a run has.

Languages that fragments added to tasks, and test sets made by machine, are shown, marked, and in no published mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness import CellResult, MetricValue, Run, SuiteSummary, TaskScore
from harness.languages.table import known_languages, recorded_name
from harness.reporting.item_origin import ADDED, PROVENANCE_MARKS, is_added, origin_mark
from harness.reporting.system_name import short_name
from harness_board.document import Extension, Score, System, TaskColumn

__all__ = ["LEGEND", "extensions", "language_marks", "run_suite", "run_systems", "run_tasks"]

OTHER_SPLIT = "*"
LEGEND = {OTHER_SPLIT: "scored on another split than test (hover shows in which system)"}
LEGEND |= {mark: f"{made} test items" for made, mark in PROVENANCE_MARKS.items()} | {
    ADDED: "added to the task by others, in none of its means"
}


def run_tasks(run: Run) -> list[TaskColumn]:
    """Return the tasks of a run, as its manifest describes them."""
    found = []
    for task, spec in run.manifest.tasks.items():
        rows = [row for row in run.results.tasks if row.task == task]
        met = dict.fromkeys(code for row in rows for code in row.by_language)
        found.append(
            TaskColumn(
                task=task,
                metrics=tuple(spec.metrics),
                headline=tuple(spec.headline),
                languages=tuple(spec.published_languages or met),
                source=spec.source,
                chance=_points(spec.chance),
                added=tuple(code for code in met if is_added(code, spec)),
                marks=language_marks(run, task),
                described={
                    code: {
                        "name": recorded_name(code, [spec.names]),
                        "family": str(family),
                        "script": str(script),
                    }
                    for code, (family, script) in spec.languages.items()
                    if code not in known_languages()
                },
            )
        )
    return found


def language_marks(run: Run, task: str) -> dict[str, str]:
    """Return the marks of a task's languages; those without marks are skipped."""
    spec = run.manifest.tasks[task]
    cells = [cell for cell in run.cells if cell.task == task and cell.status == "ok"]
    found: dict[str, str] = {}
    for cell in cells:
        marks = (OTHER_SPLIT if cell.stands_in else "") + origin_mark(cell, spec)
        found[cell.language] = "".join(dict.fromkeys(found.get(cell.language, "") + marks))
    return {code: marks for code, marks in found.items() if marks}


def run_suite(run: Run) -> SuiteSummary | None:
    """Return the first suite of a run, or None."""
    return next(iter(run.manifest.suites), None)


def run_systems(run: Run) -> list[System]:
    """Return the systems of a run; conditions that cross every language (an axis) are left to its report."""
    conditions: dict[tuple[str, str], list[TaskScore]] = {}
    for row in run.results.tasks:
        if not set(row.view) & set(run.manifest.tasks[row.task].axes):
            conditions.setdefault((row.protocol, _view(row)), []).append(row)
    cells = _cells(run)
    model, about = run.results.model, run.results.run
    systems = []
    for (protocol, view), rows in conditions.items():
        methods = sorted({row.method for row in rows})
        # Where a task was run with several methods, each is a system.
        several = len({(row.task, row.method) for row in rows}) > len({row.task for row in rows})
        for chosen in [[method] for method in methods] if several else [methods]:
            scores = (_score(row, run, cells) for row in rows if row.method in chosen)
            systems.append(
                System(
                    label=short_name(run.manifest.model),
                    path="" if short_name(run.manifest.model) == run.manifest.model else run.manifest.model,
                    origin="run",
                    protocol=protocol,
                    method=" + ".join(chosen),
                    adapter=model.adapter,
                    view=view,
                    run=about.id,
                    year=int(about.created[:4]),
                    scores=tuple(scores),
                    absences=_absences(run, protocol),
                    metadata={"parameters": model.parameters} if model.parameters else {},
                )
            )
    return systems


def _view(row: CellResult | TaskScore) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(row.view.items()))


def _score(row: TaskScore, run: Run, cells: Mapping[Any, Mapping[str, MetricValue]]) -> Score:
    spec = run.manifest.tasks[row.task]
    key = (row.task, row.protocol, row.method, _view(row))
    known = {
        code: found
        for code in row.by_language
        if (found := cells.get((*key, code), {}).get(row.metric)) is not None
    }
    expected = set(spec.published_languages)
    # An error that the results keep is that of the mean over all languages, added ones included.
    own = not expected or set(row.by_language) <= expected
    low, high = (row.ci if own else None) or (None, None)
    return Score(
        task=row.task,
        metric=row.metric,
        mean=_points(_mean(row, expected)),
        se=_points(row.se if own else None),
        low=_points(low),
        high=_points(high),
        by_language={code: value * 100 for code, value in row.by_language.items()},
        se_by_language={code: found.se * 100 for code, found in known.items() if found.se is not None},
        interval_by_language={
            code: (found.ci[0] * 100, found.ci[1] * 100) for code, found in known.items() if found.ci
        },
        is_whole=expected <= set(row.by_language),
        note=_stand_ins(row, run),
    )


def _stand_ins(row: TaskScore, run: Run) -> str:
    """Return the languages in which a score is of another split than test."""
    same = (row.task, row.protocol, row.method, row.view)
    codes = [
        cell.language
        for cell in run.cells
        if cell.status == "ok"
        and cell.stands_in
        and (cell.task, cell.protocol, cell.method, cell.view) == same
    ]
    return f"scored on another split than test: {' '.join(dict.fromkeys(codes))}" if codes else ""


def _mean(row: TaskScore, expected: set[str]) -> float | None:
    """Return the mean over the task's published languages: those that fragments added are not compared."""
    values = [value for code, value in row.by_language.items() if code in expected]
    if not expected or len(values) == len(row.by_language):
        return row.value
    return float(sum(values) / len(values)) if values else None


def _points(value: float | None) -> float | None:
    return None if value is None else value * 100


def _cells(run: Run) -> dict[tuple[Any, ...], Mapping[str, MetricValue]]:
    """Return the metrics of cells that were run with one seed: an error over items is not one over seeds."""
    found: dict[tuple[Any, ...], list[Mapping[str, MetricValue]]] = {}
    for cell in run.cells:
        if cell.status == "ok":
            key = (cell.task, cell.protocol, cell.method, _view(cell), cell.language)
            found.setdefault(key, []).append(cell.metrics)
    return {key: metrics[0] for key, metrics in found.items() if len(metrics) == 1}


def _absences(run: Run, protocol: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for cell in run.cells:
        if cell.status != "ok" and cell.protocol in {protocol, None}:
            reason = f"{cell.status}: {cell.reason}"
            found.setdefault(f"{cell.task}:{cell.language}", reason[:300])
    return found


# Languages that others added ----------------------------------------------------------------------------


def extensions(runs: Sequence[Run]) -> tuple[Extension, ...]:
    """Return the means of suites and tasks with added languages, next to the means without them."""
    return tuple(found for run in runs for found in [*_of_suites(run), *_of_tasks(run)])


def _of_suites(run: Run) -> Iterator[Extension]:
    for row in run.results.suites:
        extended = row.extended
        if extended is not None and extended.paper.value is not None:
            named = extended.languages
            yield Extension(
                system=short_name(run.manifest.model),
                name=f"suite {row.suite}",
                published=_points(row.paper.value),
                extended=extended.paper.value * 100,
                languages="; ".join(f"{task} {' '.join(codes)}" for task, codes in named.items()),
            )


def _of_tasks(run: Run) -> Iterator[Extension]:
    for row in run.results.tasks:
        spec = run.manifest.tasks[row.task]
        added = [code for code in row.by_language if is_added(code, spec)]
        if added and row.headline:
            own = [value for code, value in row.by_language.items() if code not in added]
            yield Extension(
                system=short_name(run.manifest.model),
                name=f"{row.task} ({row.metric}) {_view(row)}".rstrip(),
                published=_points(sum(own) / len(own) if own else None),
                extended=row.value * 100,
                languages=" ".join(added),
            )
