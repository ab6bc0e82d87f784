"""Doubts about scores: one answer to nearly all items, labels no better than a constant one, failed training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.reporting.blocks.number import percent
from harness.reporting.blocks.remark import Remark, Weight
from harness.statistics import NORMAL
from harness.storage.results import CellResult
from harness.storage.run_folder import Run

COLLAPSE = "The answers do not depend on the items, so the scores say nothing about the task."
MAJORITY = "The commonest gold label alone does as well, so the scores show no ability."
UNTRAINED = "The model has learned nothing or little from its training."
GUESSING = "baseline:"
"""How models begin that are run to be beaten."""
FEWEST = 100
"""Readable answers from which a cell can show more than luck."""
FEWEST_STEPS = 10
"""Steps from which the losses of single batches say whether a model learns."""
LEARNED = 0.95
"""Share of the starting loss at which training has taught a model next to nothing."""
LONGEST = 40
"""Characters of an answer that are quoted."""


def doubt_remarks(run: Run) -> Iterator[Remark]:
    """Yield a remark where scores say nothing about a task: the only check of this kind.

    The rules: nearly all answers are the same (`AnswerSpread`); labels are right no more often than the commonest gold
    label, in a task that is scored by accuracy; training ended at its starting loss, and no such labels are better.
    """
    scored = [cell for cell in run.cells if cell.status == "ok"]
    compared = [] if run.manifest.model.startswith(GUESSING) else scored
    by_accuracy = [cell for cell in compared if run.manifest.tasks[cell.task].headline == ["accuracy"]]
    by_fit: dict[str | None, list[CellResult]] = {}
    for cell in scored:
        by_fit.setdefault(cell.fit, []).append(cell)
    able = {fit for fit, cells in by_fit.items() if _is_better(cells)}
    stages = [stage for name, fit in run.results.fits.items() if name not in able for stage in fit.stages]
    for lines, reason in (
        (collapse_lines(scored), COLLAPSE),
        (majority_lines(by_accuracy), MAJORITY),
        (filter(None, map(_loss_line, stages)), UNTRAINED),
    ):
        yield from (Remark(text=f"{line}. {reason}", brief=line, weight=Weight.INVALID) for line in lines)


def majority_lines(cells: Sequence[CellResult]) -> list[str]:
    """Return ``xnli sw: 34.0 % right, not measurably more than always 'neutral' (33.3 %), 300 items``.

    The difference is that of the same items, so that only those count in which one of the two is right. A cell of at
    least 100 readable answers is no better where the 95 % interval of its difference has 0 or lies below it, and
    languages are named where they are no better together either: many small tests find no weak but real model.
    """
    groups: dict[tuple[str, str], list[CellResult]] = {}
    for cell in cells:
        if (
            (majority := cell.majority)
            and not cell.collapse
            and majority["of"] >= FEWEST
            and not _is_better([cell])
        ):
            groups.setdefault((cell.task, _quoted(majority["answer"])), []).append(cell)
    lines = []
    for (task, answer), group in groups.items():
        if not _is_better(group):
            right, constant, _, items = _totals(group)
            lines.append(
                f"{_title(cells, group, task)}: {percent(right / items)} % right, not measurably more than always "
                f"{answer} ({percent(constant / items)} %), {items:,} items"
            )
    return lines


def _is_better(group: Sequence[CellResult]) -> bool:
    """Return whether the model is right more often than the constant answer, by a normal interval of paired items."""
    right, constant, both, items = _totals(group)
    if not items:
        return False
    difference = (right - constant) / items
    variance = (right + constant - 2 * both) / items - difference**2
    return difference > NORMAL * math.sqrt(max(variance, 0.0) / items)


def _totals(group: Sequence[CellResult]) -> list[int]:
    counts = [cell.majority for cell in group if cell.majority]
    return [sum(count[name] for count in counts) for name in ("right", "constant", "both", "of")]


def _loss_line(stage: Mapping[str, Any]) -> str:
    loss = stage.get("loss")
    if not loss or loss["steps"] < FEWEST_STEPS or loss["last"] < LEARNED * loss["first"]:
        return ""
    return (
        f"{stage['stage']}: training ended at its starting loss ({loss['first']:.4g} at the start, {loss['last']:.4g} "
        f"after {loss['steps']:,} steps)"
    )


def collapse_lines(cells: Sequence[CellResult]) -> list[str]:
    """Return ``xnli: 'neutral' for all 300 items`` for every task and answer; languages where others have none."""
    groups: dict[tuple[str, str, str], list[CellResult]] = {}
    for cell in cells:
        if cell.status == "ok" and (collapse := cell.collapse):
            groups.setdefault((cell.task, _quoted(collapse["answer"]), collapse["unit"]), []).append(cell)
    return [_line(cells, group, *key) for key, group in groups.items()]


def _line(every: Sequence[CellResult], group: Sequence[CellResult], task: str, answer: str, unit: str) -> str:
    count, of = (sum((cell.collapse or {})[name] for cell in group) for name in ("count", "of"))
    how_many = f"all {of:,}" if count == of else f"{count:,} of {of:,}"
    return f"{_title(every, group, task)}: {answer} for {how_many} {unit}"


def _title(every: Sequence[CellResult], group: Sequence[CellResult], task: str) -> str:
    """Return a task, with the languages of the group where others have scores too."""
    codes = dict.fromkeys(cell.language for cell in group)
    is_whole = all(cell.language in codes for cell in every if cell.task == task and cell.status == "ok")
    return task if is_whole else f"{task} {' '.join(codes)}"


def _quoted(answer: object) -> str:
    if answer is None:
        return "one candidate"
    if not answer:
        return "an empty answer"
    text = str(answer)
    return f"'{text if len(text) <= LONGEST else text[:LONGEST] + '…'}'"
