"""Runs as systems of a board: one for every protocol and view that a run has.

Languages that fragments added to tasks, and test sets made by machine, are shown, marked, and in no published mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness import Run
from harness.languages import known_languages, recorded_name
from harness.reporting import ADDED, PROVENANCE_MARKS, is_added, origin_mark
from harness.scores import CellGroups, cells_of_row, group_cells
from harness.storage import TaskScore
from harness_board.document import Score, System, TaskColumn

OTHER_SPLIT = "*"
LEGEND = {
    OTHER_SPLIT: "scored on another split than test (hover shows in which system)",
    **{mark: f"{made} test items" for made, mark in PROVENANCE_MARKS.items()},
    ADDED: "added to the task by others, in none of its means",
}


def run_tasks(run: Run) -> list[TaskColumn]:
    """Return the tasks of a run, as its manifest describes them."""
    columns = []
    for task, spec in run.manifest.tasks.items():
        scored = dict.fromkeys(
            code for row in run.results.tasks if row.task == task for code in row.by_language
        )
        described = {
            code: {"name": recorded_name(code, [spec.names]), "family": family, "script": script}
            for code, (family, script) in spec.languages.items()
            if code not in known_languages()
        }
        columns.append(
            TaskColumn(
                task=task,
                metrics=tuple(spec.metrics),
                headline=tuple(spec.headline),
                languages=tuple(spec.published_languages or scored),
                source=spec.source,
                chance=_points(spec.chance),
                added=tuple(code for code in scored if is_added(code, spec)),
                marks=language_marks(run, task),
                described=described,
            )
        )
    return columns


def language_marks(run: Run, task: str) -> dict[str, str]:
    """Return the marks of a task's languages; those without marks are skipped."""
    marks: dict[str, str] = {}
    for cell in run.cells:
        if cell.task == task and cell.status == "ok":
            split = OTHER_SPLIT if cell.stands_in else ""
            letters = marks.get(cell.language, "") + split + origin_mark(cell, run.manifest.tasks[task])
            marks[cell.language] = "".join(dict.fromkeys(letters))
    return {code: letters for code, letters in marks.items() if letters}


def run_systems(run: Run) -> list[System]:
    """Return the systems of a run; conditions that cross every language (an axis) are left to its report."""
    conditions: dict[tuple[str, str], list[TaskScore]] = {}
    for row in run.results.tasks:
        if not set(row.view) & set(run.manifest.tasks[row.task].axes):
            conditions.setdefault((row.protocol, view_text(row.view)), []).append(row)
    groups = group_cells(run.cells)
    model, about = run.results.model, run.results.run
    systems = []
    for (protocol, view), rows in conditions.items():
        methods = sorted({row.method for row in rows})
        # Where a task was run with several methods, each is a system.
        several = len({(row.task, row.method) for row in rows}) > len({row.task for row in rows})
        for chosen in [[method] for method in methods] if several else [methods]:
            systems.append(
                System(
                    label=run.manifest.model_name,
                    path=run.manifest.model,
                    origin="run",
                    protocol=_true_protocol(protocol, rows, run),
                    method=" + ".join(chosen),
                    adapter=model.adapter,
                    view=view,
                    run=about.id,
                    year=int(about.created[:4]),
                    scores=tuple(_score(row, run, groups) for row in rows if row.method in chosen),
                    absences=_absences(run, protocol),
                    metadata={"parameters": model.parameters} if model.parameters else {},
                )
            )
    return systems


def _true_protocol(protocol: str, rows: Sequence[TaskScore], run: Run) -> str:
    """Return ``in_language`` where a system is tested in its training language alone: nothing is transferred."""
    is_transfer = any(set(row.by_language) - {run.manifest.tasks[row.task].source} for row in rows)
    return protocol if is_transfer or protocol != "zero_shot_transfer" else "in_language"


def view_text(view: Mapping[str, str]) -> str:
    """Return the conditions of a view in a line: ``prompt=letters shots=2``."""
    return " ".join(f"{name}={value}" for name, value in sorted(view.items()))


def _score(row: TaskScore, run: Run, groups: CellGroups) -> Score:
    cells = cells_of_row(row, groups)
    # An error over items is not one over seeds.
    values = {code: own[0].metrics[row.metric] for code, own in cells.items() if len(own) == 1}
    other_split = [code for code, own in cells.items() if any(cell.stands_in for cell in own)]
    # Languages that fragments added are not compared; the error of a mean that counts them is not kept.
    expected = set(run.manifest.tasks[row.task].published_languages) or set(row.by_language)
    published = [value for code, value in row.by_language.items() if code in expected]
    is_published = len(published) == len(row.by_language)
    mean = row.value if is_published else sum(published) / len(published) if published else None
    low, high = (row.ci if is_published else None) or (None, None)
    return Score(
        task=row.task,
        metric=row.metric,
        mean=_points(mean),
        se=_points(row.se if is_published else None),
        low=_points(low),
        high=_points(high),
        by_language={code: value * 100 for code, value in row.by_language.items()},
        se_by_language={code: value.se * 100 for code, value in values.items() if value.se is not None},
        interval_by_language={
            code: (value.ci[0] * 100, value.ci[1] * 100) for code, value in values.items() if value.ci
        },
        is_whole=expected <= set(row.by_language),
        note=f"scored on another split than test: {' '.join(other_split)}" if other_split else "",
    )


def _points(value: float | None) -> float | None:
    return None if value is None else value * 100


def _absences(run: Run, protocol: str) -> dict[str, str]:
    reasons: dict[str, str] = {}
    for cell in run.cells:
        if cell.status != "ok" and cell.protocol in {protocol, None}:
            reasons.setdefault(f"{cell.task}:{cell.language}", f"{cell.status}: {cell.reason}"[:300])
    return reasons
