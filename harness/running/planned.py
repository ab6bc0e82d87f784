"""Reports of a run on its plan and its results while it works."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.planning.plan import Cell, StagePlan
from harness.progress import CellOutcome, PlannedCell, PlannedFit
from harness.storage.results import CellResult


def planned_cells(cells: Sequence[Cell], limit: int | None) -> list[PlannedCell]:
    """Return the report on cells before they are run."""
    conditions = {cell.digest: _parts(cell) for cell in cells}
    of_task: dict[str, set[tuple[str, str]]] = {}
    for cell in cells:
        of_task.setdefault(cell.spec.task, set()).update(conditions[cell.digest].items())
    planned = []
    for cell in cells:
        labels, every = conditions[cell.digest], of_task[cell.spec.task]
        differs = [
            text
            for name, text in labels.items()
            if any(key == name and value != text for key, value in every)
        ]
        planned.append(
            PlannedCell(
                digest=cell.digest,
                task=cell.spec.task,
                language=cell.language.code,
                condition=", ".join(differs),
                items=_expected_items(cell, limit),
            )
        )
    return planned


def _parts(cell: Cell) -> dict[str, str]:
    return {
        "protocol": cell.pairing.protocol,
        "method": cell.pairing.method.name,
        "view": " ".join(f"{name}={value}" for name, value in sorted(cell.view.items())) or "plain",
    }


def _expected_items(cell: Cell, limit: int | None) -> int | None:
    """Return how many items a cell has by its task's published releases, after the limit."""
    counts = [release.count(cell.language.code) for release in cell.spec.releases.values()]
    totals = [count for count in counts if count is not None]
    if not totals or cell.test.files.origin == "sample" or (limit and cell.spec.draw == "clusters"):
        return None
    return max(totals) if limit is None else min(limit, max(totals))


def planned_fits(stages: Mapping[str, StagePlan]) -> list[PlannedFit]:
    """Return the report on training stages, by digest, before they begin.

    Their sizes are compared by what is known of all of them: steps, else limited examples, else bytes of the files.
    """
    measures: tuple[Callable[[StagePlan], float | None], ...] = (_steps, _limited, _bytes)
    for measure in measures:
        sizes = {digest: measure(stage) for digest, stage in stages.items()}
        measured = {digest: size for digest, size in sizes.items() if size}
        if len(measured) == len(stages):
            return [PlannedFit(digest=digest, size=size) for digest, size in measured.items()]
    return [PlannedFit(digest=digest, size=1.0) for digest in stages]


def _steps(stage: StagePlan) -> float | None:
    steps = stage.settings.max_steps
    return None if steps is None else float(steps * stage.settings.batch_size)


def _limited(stage: StagePlan) -> float | None:
    return None if stage.limit is None else stage.settings.epochs * stage.limit * len(stage.train)


def _bytes(stage: StagePlan) -> float | None:
    files = [path for _, split in stage.train for path in split.files.paths]
    try:
        return stage.settings.epochs * sum(path.stat().st_size for path in files)
    except OSError:
        return None


def outcome_of(result: CellResult, headline: Sequence[str]) -> CellOutcome:
    """Return the reported outcome of a cell: the first headline metric that it has."""
    name = next((name for name in headline if name in result.metrics), "")
    metric = result.metrics.get(name)
    return CellOutcome(
        digest=result.digest,
        metric=name,
        value=None if metric is None else metric.value,
        interval=None if metric is None else metric.ci,
        items=result.n,
        failure=(result.reason or "no reason was given") if result.status == "failed" else "",
    )
