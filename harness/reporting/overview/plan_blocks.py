"""Preview of a plan, by task, before it is run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.planning.plan import Cell, Plan, grouped_reason, reason_without_language
from harness.planning.unused_options import NO_EFFECT
from harness.reporting.blocks.model import BLANK, Block, Note, Notes, Table, TableRow
from harness.reporting.blocks.remark import counted
from harness.reporting.overview.column import conditions_of, short_protocol
from harness.reporting.overview.missing import Missing, missing


def plan_title(plan: Plan) -> str:
    """Return the model with the numbers of cells and fits."""
    fits = f"{counted(len(plan.fits), 'model')} to fit"
    tasks = counted(len({cell.spec.task for cell in plan.cells}), "task")
    languages = counted(len({cell.language.code for cell in plan.cells}), "language")
    name = f"{plan.model.name} ({plan.model.description.adapter})"
    return f"{name}: {counted(len(plan.cells), 'cell')}, {tasks}, {languages}, {fits}"


def announced_plan(plan: Plan) -> list[Block]:
    """Return the few lines that are shown before a run; its summary says the rest."""
    blocks: list[Block] = [Note(plan_title(plan))]
    blocks.append(Notes(_fits(plan)))
    counts: dict[str, int] = {}
    for group in _missing(plan):
        label = "for other reasons" if group.is_reason else group.title
        label += f", {group.remedy}" if group.remedy else ""
        counts[label] = counts.get(label, 0) + sum(map(len, group.cells.values()))
    if counts:
        text = "; ".join(f"{count:,} {name}" for name, count in counts.items())
        blocks.append(Notes([f"skipped, harness plan lists them: {text}"]))
    # What the summary does not say, since it changes no number.
    blocks.append(Notes([f"note: {note}" for note in plan.notes if NO_EFFECT in note]))
    return blocks


def planned_tasks(plan: Plan) -> Iterator[Block]:
    """Yield a row per task, the notes, and what is skipped with the command that gets it."""
    yield _table(plan)
    yield Notes([*_fits(plan), *(f"note: {note}" for note in plan.notes)])
    if plan.skipped:
        yield Note(f"Skipped: {counted(len(plan.skipped), 'cell')}")
        yield Notes([group.line for group in _missing(plan)])


def planned_details(plan: Plan) -> list[str]:
    """Return a line for every fit, every note, and every reason for what is skipped."""
    return [
        *(f"  fit {fit.title}, recipe {fit.recipe}" for fit in plan.fits),
        *(f"  note: {note}" for note in plan.notes),
        *skipped_lines(plan),
    ]


def skipped_lines(plan: Plan) -> list[str]:
    """Return a line for every reason for what is skipped, with the task and its languages."""
    groups: dict[tuple[str, str], dict[str, str]] = {}
    for skip in plan.skipped:
        shape = reason_without_language(skip.reason, skip.language)
        groups.setdefault((skip.task, shape), {}).setdefault(skip.language, skip.reason)
    return [
        f"  skipped {task} {' '.join(reasons)}: {grouped_reason(reasons.values())}"
        for (task, _), reasons in groups.items()
    ]


def _fits(plan: Plan) -> list[str]:
    """Return one line on all fits; none where there are none."""
    if not plan.fits:
        return []
    recipes = ", ".join(dict.fromkeys(fit.recipe for fit in plan.fits))
    numbers = list(dict.fromkeys(str(fit.seed) for fit in plan.fits))
    seeds = f"{'seed' if len(numbers) == 1 else 'seeds'} {', '.join(numbers)}"
    return [
        f"to fit, recipe {recipes}, {seeds}: {', '.join(dict.fromkeys(fit.data_title for fit in plan.fits))}"
    ]


def _missing(plan: Plan) -> list[Missing]:
    return missing((skip.task, skip.language, skip.reason) for skip in plan.skipped)


def _table(plan: Plan) -> Table:
    groups: dict[tuple[str, str, str, str], list[Cell]] = {}
    for cell in plan.cells:
        fit = BLANK if cell.fit is None else cell.fit.data_title
        name = " ".join(filter(None, [cell.spec.task, _protocol(cell), conditions_of(cell.view)]))
        groups.setdefault((cell.spec.task, name, cell.pairing.method.name, fit), []).append(cell)
    for task in dict.fromkeys(skip.task for skip in plan.skipped):
        if not any(key[0] == task for key in groups):
            groups[task, task, BLANK, BLANK] = []
    skipped = {task: sum(skip.task == task for skip in plan.skipped) for task, *_ in groups}
    return Table(
        title="",
        untitled=True,
        tight=True,
        corner="task",
        heads=("languages", "cells", "skipped", "method", "fit"),
        # What is skipped of a task is in the first of its rows.
        rows=tuple(_row(key, cells, skipped.pop(key[0], 0)) for key, cells in groups.items()),
        words=frozenset({3, 4}),
        folding=True,
    )


def _row(key: tuple[str, str, str, str], cells: Sequence[Cell], skipped: int) -> TableRow:
    _, name, method, fit = key
    languages = len({cell.language.code for cell in cells})
    return TableRow(
        label=name,
        fields=(f"{languages:,}", f"{len(cells):,}", f"{skipped:,}" if skipped else BLANK, method, fit),
    )


def _protocol(cell: Cell) -> str:
    return short_protocol(cell.pairing.protocol, cell.pairing.method.name)
