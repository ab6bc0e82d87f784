"""Marks of scores and doubts about them: unreadable answers, items of another origin, answers that say nothing."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from harness.errors import HarnessError
from harness.metrics.scoring import answers_of
from harness.reporting.blocks.model import Block, Note, make_table, visible
from harness.reporting.blocks.number import Score, percent
from harness.reporting.blocks.remark import Remark, Weight, counted
from harness.reporting.overview.column import conditions_of, group_pairs, list_names
from harness.statistics import NORMAL
from harness.storage.results import CellResult, TaskScore, TaskSummary
from harness.storage.run_folder import Run

UNREADABLE = "unreadable"
"""Shown instead of a score."""
WITH_UNREADABLE = "?"
"""The mark of a mean over cells of which some are unreadable."""
MOST_UNPARSED = 0.5
"""Share of a cell's answers above which it is unreadable, where no rule could read them, cut or whole."""
MOST_TASKS = 2
"""Those with the largest shares are named in one line."""
LONGEST = 60
"""Characters of an unreadable answer that is quoted in a line."""
ADDED = "⁺"
"""The mark of languages that another package or file added to the task."""
PROVENANCE_MARKS = {"machine-translated": "†", "post-edited": "‡"}
_MEANINGS = {
    "machine-translated": "machine-translated test items",
    "post-edited": "test items translated by machine and edited by people",
}
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
LONGEST_LABEL = 40
"""Characters of an answer to nearly all items that are quoted."""


def shorten(text: str, longest: int) -> str:
    """Return a text, with ``…`` after its first `longest` characters where it has more."""
    return text if len(text) <= longest else f"{text[:longest]}…"


# Answers that could not be read; cells that mostly have such answers have no score of their task ----------------


def unread_count(cell: CellResult) -> int:
    """Return how many answers of a cell could not be read, or were cut before they could be."""
    return cell.unparsed + cell.unanswered


def is_unreadable(cell: CellResult) -> bool:
    """Return whether more than half of a finished cell's answers could not be read."""
    return cell.status == "ok" and bool(unread_count(cell) > MOST_UNPARSED * cell.n)


def unreadable_answers(run: Run) -> Iterator[dict[str, str]]:
    """Yield a row for every answer that could not be read, or was cut before it could be, in the order of the cells.

    The key ``written`` has the model's text; it is empty where the records do not hold it. Raises `DataError` for
    broken records.
    """
    for cell in run.cells:
        for record in run.records(cell) if cell.status == "ok" and unread_count(cell) else ():
            if record.flags.get("unparsed") or record.flags.get("unanswered"):
                yield {
                    "task": cell.task,
                    "conditions": conditions_of(cell.view),
                    "language": cell.language,
                    "id": record.id,
                    "written": _written(record.prediction),
                }


def _written(prediction: Any) -> str:
    texts = [answer.get("raw") for answer in answers_of(prediction) if isinstance(answer, Mapping)]
    return next((str(text) for text in texts if text is not None), "")


def unreadable_line(run: Run) -> str:
    """Return how many answers are unreadable, in which tasks, with one of them; empty where there are none."""
    cells = [cell for cell in run.cells if cell.status == "ok" and unread_count(cell)]
    if not cells:
        return ""
    counts = {
        task: _unread(group) for task, group in group_pairs((cell.task, cell) for cell in cells).items()
    }
    by_task = {task: unread / items for task, (unread, items) in counts.items()}
    most = sorted(by_task, key=by_task.__getitem__, reverse=True)[:MOST_TASKS]
    shares = [f"{task} {percent(by_task[task])} %" for task in most]
    shares += [f"{len(by_task) - len(most)} more tasks"] * (len(by_task) > len(most))
    try:
        example = next(unreadable_answers(run), {"written": ""})["written"]
    except HarnessError:
        example = ""
    text = " ".join(visible(example).split())
    quoted = f", such as '{shorten(text, LONGEST)}'" if text else ""
    unread, items = _unread(cells)
    return f"{unread:,} of {items:,} answers {UNREADABLE} ({', '.join(shares)}){quoted}"


def _unread(cells: Sequence[CellResult]) -> tuple[int, int]:
    return sum(map(unread_count, cells)), sum(cell.n for cell in cells)


def unreadable_blocks(run: Run) -> list[Block]:
    """Return the unreadable answers of a run as a table."""
    rows = [
        (
            "{task}:{language} {conditions}".format_map(answer).rstrip(),
            answer["id"],
            visible(answer["written"]) or "(empty)",
        )
        for answer in unreadable_answers(run)
    ]
    title, heads = f"{len(rows):,} {UNREADABLE} answers", ("cell", "item", "written")
    table = make_table(title, heads, rows, words={0, 1}, folding=True)
    return [table if rows else Note("No answer of this run is unreadable.")]


def marked_mean(score: Score, languages: Collection[str], unreadable: Collection[str]) -> Score:
    """Return the mean over some languages with a mark where some are unreadable; no score where all are."""
    if score.value is None or not set(languages) & set(unreadable):
        return score
    if set(languages) <= set(unreadable):
        return Score(mark=UNREADABLE)
    return replace(score, mark=f"{score.mark}{WITH_UNREADABLE}")


def unreadable_notes(cells: Sequence[CellResult]) -> list[str]:
    """Return a sentence that names the unreadable cells, with how many of their answers could not be read."""
    unreadable = [cell for cell in cells if is_unreadable(cell)]
    labels = [f"{_title(cell)} ({unread_count(cell):,} of {cell.n:,})" for cell in unreadable]
    cut = any(cell.unanswered and cell.reasoning_tokens != 0 for cell in unreadable)
    more = ", and where the reasoning was cut a larger -o reasoning_budget or -o thinking=off" if cut else ""
    text = (
        f"{UNREADABLE}: more than half of the answers could not be read, which says nothing about the task; try "
        f"another --prompt, --chat or --constrained{more}: {', '.join(labels)}"
    )
    return [text] if labels else []


def _title(cell: CellResult) -> str:
    return f"{cell.task}:{cell.language}"


# Items that are not the benchmark's own text: machine-translated, post-edited, added by others ------------------


def origin_mark(cell: CellResult, spec: TaskSummary) -> str:
    """Return the marks of a cell's score.

    None for what a translator made in the run itself, which the head of its column shows. Cells of older runs have
    no provenance, and no mark for it.

    Args:
        cell: One of ``results.json``.
        spec: What the manifest says of its task.
    """
    mark = "" if _is_variant(cell) else PROVENANCE_MARKS.get(cell.provenance or "", "")
    return mark + (ADDED if is_added(cell.language, spec) else "")


def is_added(code: str, spec: TaskSummary) -> bool:
    """Return whether a fragment added the language to its task."""
    published = spec.published_languages or ()
    return bool(published) and code not in published


def origin_remarks(run: Run) -> list[Remark]:
    """Return the legend of the marks that a run's scores have, with the cells that have them."""
    tasks, remarks = run.manifest.tasks, []
    scored = [cell for cell in run.cells if cell.status == "ok"]
    for provenance, mark in PROVENANCE_MARKS.items():
        cells = (cell for cell in scored if cell.provenance == provenance and not _is_variant(cell))
        if titles := dict.fromkeys(map(_title, cells)):
            text = f"{mark} {_MEANINGS[provenance]}: {', '.join(titles)}"
            brief = f"{counted(len(titles), 'test set')} {provenance} ({mark})"
            remarks.append(Remark(text, brief, Weight.INCOMPARABLE))
    # The items of a variant that a translator made do not say how the language's own were made.
    added = group_pairs(
        (_title(cell), _origin(cell, tasks[cell.task]))
        for cell in sorted(scored, key=_is_variant)
        if is_added(cell.language, tasks[cell.task])
    )
    if added:
        names = list_names(
            f"{title} ({origins[0]})" if origins[0] else title for title, origins in added.items()
        )
        meaning = f"added to the task by another package or file, not in the mean without {ADDED}"
        brief = f"{counted(len(added), 'test set')} added by another package or file ({ADDED})"
        remarks.append(Remark(f"{ADDED} {meaning}: {names}", brief, Weight.INCOMPARABLE))
    return remarks


def published_means(
    run: Run, rows: Sequence[TaskScore | None], label: str
) -> list[tuple[str, tuple[Score, ...]]]:
    """Return the row of means over the published languages, where added ones are in the means of some column.

    Args:
        run: Whose means they are.
        rows: By column: its row of ``results.json``.
        label: What the row of means over all languages is called.
    """
    means, is_extended = [], False
    for row in rows:
        if row is None:
            means.append(Score())
            continue
        spec = run.manifest.tasks[row.task]
        values = [value for code, value in row.by_language.items() if not is_added(code, spec)]
        is_whole = len(values) == len(row.by_language)
        is_extended |= not is_whole
        means.append(Score(row.value if is_whole else fmean(values) if values else None))
    return [(f"{label} without {ADDED}", tuple(means))] if is_extended else []


def _is_variant(cell: CellResult) -> bool:
    return "translated" in (cell.data or {})


def _origin(cell: CellResult, spec: TaskSummary) -> str:
    plugin = spec.added.get(cell.language)
    phrases = ("" if _is_variant(cell) else cell.provenance, f"from {plugin}" if plugin else "")
    return ", ".join(filter(None, phrases))


# One answer to nearly all items, labels no better than a constant one, failed training --------------------------


def doubt_remarks(run: Run) -> Iterator[Remark]:
    """Yield a remark where scores say nothing about a task: the only check of this kind.

    The rules: nearly all answers are the same (`AnswerSpread`); labels are right no more often than the commonest gold
    label, in a task that is scored by accuracy; training ended at its starting loss, and no such labels are better.
    """
    scored = [cell for cell in run.cells if cell.status == "ok"]
    compared = [] if run.manifest.model.startswith(GUESSING) else scored
    by_accuracy = [cell for cell in compared if run.manifest.tasks[cell.task].headline == ["accuracy"]]
    by_fit = group_pairs((cell.fit, cell) for cell in scored)
    able = {fit for fit, cells in by_fit.items() if _is_better(cells)}
    stages = [stage for name, fit in run.results.fits.items() if name not in able for stage in fit.stages]
    for lines, reason in (
        (collapse_lines(scored), COLLAPSE),
        (majority_lines(by_accuracy), MAJORITY),
        (filter(None, map(_loss_line, stages)), UNTRAINED),
    ):
        yield from (Remark(f"{line}. {reason}", line, Weight.INVALID) for line in lines)


def majority_lines(cells: Sequence[CellResult]) -> list[str]:
    """Return ``xnli sw: 34.0 % right, not measurably more than always 'neutral' (33.3 %), 300 items``.

    The difference is that of the same items, so that only those count in which one of the two is right. A cell of at
    least 100 readable answers is no better where the 95 % interval of its difference has 0 or lies below it, and
    languages are named where they are no better together either: many small tests find no weak but real model.
    """
    groups = group_pairs(
        ((cell.task, _quoted(majority["answer"])), cell)
        for cell in cells
        if (majority := cell.majority)
        and not cell.collapse
        and majority["of"] >= FEWEST
        and not _is_better([cell])
    )
    lines = []
    for (task, answer), group in groups.items():
        right, constant, _, items = _totals(group)
        if not _is_better(group):
            lines.append(
                f"{_task_title(cells, group, task)}: {percent(right / items)} % right, not measurably more than always "
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
    groups = group_pairs(
        ((cell.task, _quoted(collapse["answer"]), collapse["unit"]), cell)
        for cell in cells
        if cell.status == "ok" and (collapse := cell.collapse)
    )
    lines = []
    for (task, answer, unit), group in groups.items():
        count, of = (sum((cell.collapse or {})[name] for cell in group) for name in ("count", "of"))
        how_many = f"all {of:,}" if count == of else f"{count:,} of {of:,}"
        lines.append(f"{_task_title(cells, group, task)}: {answer} for {how_many} {unit}")
    return lines


def _task_title(every: Sequence[CellResult], group: Sequence[CellResult], task: str) -> str:
    """Return a task, with the languages of the group where others have scores too."""
    codes = dict.fromkeys(cell.language for cell in group)
    is_whole = all(cell.language in codes for cell in every if cell.task == task and cell.status == "ok")
    return task if is_whole else f"{task} {' '.join(codes)}"


def _quoted(answer: object) -> str:
    if answer is None:
        return "one candidate"
    return f"'{shorten(str(answer), LONGEST_LABEL)}'" if answer else "an empty answer"
