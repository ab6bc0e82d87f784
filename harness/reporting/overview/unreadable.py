"""Answers that could not be read; cells that mostly have such answers have no score of their task."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from harness.errors import HarnessError
from harness.metrics.repeats import answers_of
from harness.reporting.blocks.model import Block, Note, Table, rows_of
from harness.reporting.blocks.number import percent
from harness.reporting.blocks.score import Score
from harness.reporting.blocks.visible import visible
from harness.reporting.overview.column import conditions_of
from harness.storage.results import CellResult
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
"""Characters of the answer that is quoted in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableAnswer:
    """An answer that could not be read, or was cut before it could be."""

    task: str
    conditions: str
    language: str
    id: str
    written: str
    """Text that the model wrote; empty where the records do not hold it."""


def unreadable_answers(run: Run) -> Iterator[UnreadableAnswer]:
    """Yield the unreadable answers of a run in the order of its cells; raises `DataError` for broken records."""
    for cell in run.cells:
        if cell.status == "ok" and unread_count(cell):
            for record in run.records(cell):
                if record.flags.get("unparsed") or record.flags.get("unanswered"):
                    yield UnreadableAnswer(
                        task=cell.task,
                        conditions=conditions_of(cell.view),
                        language=cell.language,
                        id=record.id,
                        written=_written(record.prediction),
                    )


def _written(prediction: Any) -> str:
    texts = [answer.get("raw") for answer in answers_of(prediction) if isinstance(answer, Mapping)]
    return next((str(text) for text in texts if text is not None), "")


def unreadable_line(run: Run) -> str:
    """Return how many answers are unreadable, in which tasks, with one of them; empty where there are none."""
    cells = [cell for cell in run.cells if cell.status == "ok" and unread_count(cell)]
    if not cells:
        return ""
    tasks = {cell.task: [sibling for sibling in cells if sibling.task == cell.task] for cell in cells}
    by_task = {
        task: sum(map(unread_count, group)) / sum(cell.n for cell in group) for task, group in tasks.items()
    }
    most = sorted(by_task, key=by_task.__getitem__, reverse=True)[:MOST_TASKS]
    shares = [f"{task} {percent(by_task[task])} %" for task in most]
    shares += [f"{len(by_task) - len(most)} more tasks"] * (len(by_task) > len(most))
    try:
        example = next(unreadable_answers(run), None)
    except HarnessError:
        example = None
    text = "" if example is None else " ".join(visible(example.written).split())
    quoted = f", such as '{text if len(text) <= LONGEST else text[:LONGEST] + '…'}'" if text else ""
    unread, items = sum(map(unread_count, cells)), sum(cell.n for cell in cells)
    return f"{unread:,} of {items:,} answers {UNREADABLE} ({', '.join(shares)}){quoted}"


def unreadable_blocks(run: Run) -> list[Block]:
    """Return the unreadable answers of a run as a table."""
    answers = list(unreadable_answers(run))
    if not answers:
        return [Note("No answer of this run is unreadable.")]
    rows = (
        (
            f"{answer.task}:{answer.language} {answer.conditions}".rstrip(),
            answer.id,
            visible(answer.written) or "(empty)",
        )
        for answer in answers
    )
    return [
        Table(
            title=f"{len(answers):,} {UNREADABLE} answers",
            corner="cell",
            heads=("item", "written"),
            rows=rows_of(rows),
            words=frozenset({0, 1}),
            folding=True,
        )
    ]


def unreadable_rows(run: Run) -> list[dict[str, Any]]:
    """Return the unreadable answers of a run as rows of plain values."""
    return [asdict(answer) for answer in unreadable_answers(run)]


def is_unreadable(cell: CellResult) -> bool:
    """Return whether more than half of a finished cell's answers could not be read."""
    return cell.status == "ok" and bool(unread_count(cell) > MOST_UNPARSED * cell.n)


def marked_mean(score: Score, languages: Collection[str], unreadable: Collection[str]) -> Score:
    """Return the mean over some languages with a mark where some are unreadable; no score where all are."""
    if score.value is None or not set(languages) & set(unreadable):
        return score
    if set(languages) <= set(unreadable):
        return Score(mark=UNREADABLE)
    return replace(score, mark=f"{score.mark}{WITH_UNREADABLE}")


def unreadable_notes(cells: Sequence[CellResult]) -> list[str]:
    """Return a sentence that names the unreadable cells, with how many of their answers could not be read."""
    labels = [
        f"{cell.task}:{cell.language} ({unread_count(cell):,} of {cell.n:,})"
        for cell in cells
        if is_unreadable(cell)
    ]
    if not labels:
        return []
    return [
        f"{UNREADABLE}: more than half of the answers could not be read, which says nothing about the task; try "
        f"another --prompt, --chat or --constrained{_more_room(cells)}: {', '.join(labels)}"
    ]


def unread_count(cell: CellResult) -> int:
    """Return how many answers of a cell could not be read, or were cut before they could be."""
    return cell.unparsed + cell.unanswered


def _more_room(cells: Sequence[CellResult]) -> str:
    """Return further options to try where models reason and are cut."""
    cut = any(is_unreadable(cell) and cell.unanswered and cell.reasoning_tokens != 0 for cell in cells)
    return ", and where the reasoning was cut a larger -o reasoning_budget or -o thinking=off" if cut else ""
