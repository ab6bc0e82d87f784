"""The checklists of a board's runs: error rates by language and test with their floors, and failing cases."""

from __future__ import annotations

from collections.abc import Sequence

from harness.reporting.html.cases import CASES_TOLD, case_folds
from harness.reporting.html.heatmap import error_heatmap
from harness.reporting.html.layout import fold, notes
from harness.reporting.markup.element import Element, element
from harness.reporting.matrix import matrices
from harness.storage.run_folder import Run

__all__ = ["checklist_sections"]


def checklist_sections(runs: Sequence[Run]) -> dict[str, tuple[Element, ...]]:
    """Return what the checklists of runs show, by task; tasks that are no checklists have none."""
    found: dict[str, list[Element]] = {}
    for run in runs:
        for matrix in matrices(run, {}):
            if matrix.heat:
                task = matrix.title.partition(" ")[0]
                found.setdefault(task, []).append(_checklist(run, task, error_heatmap(matrix), matrix.notes))
    return {task: tuple(parts) for task, parts in found.items()}


def _checklist(run: Run, task: str, heat: Element, told: Sequence[str]) -> Element:
    cases, faults = case_folds(run, task)
    failing = fold("Failing test cases", element("p", CASES_TOLD, class_="note"), *cases) if cases else None
    return element(
        "section",
        element("h2", f"{run.results['model']['ref']}: errors by language and test"),
        heat,
        notes([*told, *faults]),
        failing,
        class_="checklist",
    )
