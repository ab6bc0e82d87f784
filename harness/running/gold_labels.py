"""Gives the cells of a plan the labels that people corrected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.data.gold import VIEW, GoldFile, gold_note, read_gold
from harness.data.sources import DataFinder
from harness.errors import UsageError
from harness.planning.plan import Cell, Plan
from harness.registry.registry import Registry
from harness.running.cell_reader import CellReader


def apply_gold(plans: Sequence[Plan], path: Path, registry: Registry, finder: DataFinder) -> list[Plan]:
    """Return the plans with the corrected gold in the view of every cell whose task the file names.

    Raises:
        UsageError: For a file that cannot be read, names no task of the plans, or has labels that a task does not have.
        DataError: For labels of items that a cell does not have.
    """
    gold = read_gold(path)
    planned = {cell.spec.task for plan in plans for cell in plan.cells}
    if planned and not planned & gold.tasks:
        raise UsageError(
            f"The gold {str(path)!r} labels items of {', '.join(sorted(gold.tasks))}; the run has "
            f"{', '.join(sorted(planned))}."
        )
    reader = CellReader(registry, finder)
    return [_with_gold(plan, gold, reader) for plan in plans]


def _with_gold(plan: Plan, gold: GoldFile, reader: CellReader) -> Plan:
    cells = tuple(_corrected(cell, gold, reader) for cell in plan.cells)
    labels: dict[str, dict[str, int]] = {}
    for cell in cells:
        if cell.gold is not None:
            counts = labels.setdefault(cell.spec.task, {})
            counts[cell.language.code] = max(counts.get(cell.language.code, 0), len(cell.gold.labels))
    notes = [gold_note(task, gold.name, counts) for task, counts in labels.items()]
    return replace(plan, cells=cells, notes=(*plan.notes, *notes))


def _corrected(cell: Cell, gold: GoldFile, reader: CellReader) -> Cell:
    if cell.spec.task not in gold.tasks:
        return cell
    gold.check_labels(cell.spec.task, cell.spec.kind, cell.spec.label_names)
    cell_gold = gold.of(cell.spec.task, cell.language.code, cell.view)
    if cell_gold.labels:
        items = reader.stream(cell, limit=None, seed=0)
        cell_gold.check_known((example.id for example in items), cell.title)
    return replace(cell, view={**cell.view, VIEW: gold.name}, gold=cell_gold)
