"""The checklists of a board's runs: error rates by language and test with their floors, and failing cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness import Run
from harness.reporting.formats import TaskDetails
from harness.reporting.html.heatmap import error_heatmap
from harness.reporting.html.layout import fold, notes
from harness.reporting.markup.element import Element, element
from harness.reporting.matrix import Matrix, matrices
from harness.reporting.sections import installed_sections, read_sections

__all__ = ["checklist_sections"]


def checklist_sections(runs: Sequence[Run]) -> dict[str, tuple[Element, ...]]:
    """Return what the checklists of runs show, by task; other tasks have no entry."""
    found: dict[str, list[Element]] = {}
    for run in runs:
        for matrix in matrices(run, {}):
            if matrix.heat:
                task = matrix.title.partition(" ")[0]
                found.setdefault(task, []).append(_checklist(run, task, matrix))
    return {task: tuple(parts) for task, parts in found.items()}


def _checklist(run: Run, task: str, matrix: Matrix) -> Element:
    details = list(_details(run, task))
    problems = [problem for own in details for problem in own.problems]
    return element(
        "section",
        element("h2", f"{run.results['model']['ref']}: errors by language and test"),
        error_heatmap(matrix),
        notes([*matrix.notes, *problems]),
        [fold(own.title, element("p", own.note, class_="note"), *own.parts) for own in details if own.parts],
        class_="checklist",
    )


def _details(run: Run, task: str) -> Iterator[TaskDetails]:
    """Yield what the report sections of plugins show of one task of a run."""
    for report in read_sections([run], installed_sections()).values():
        details = report.task_details(task)
        if details is not None:
            yield details
