"""Marks for scores whose items are not the benchmark's own text: machine-translated, post-edited, added by others."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from harness.reporting.blocks.remark import Remark, Weight, counted
from harness.reporting.blocks.score import Score
from harness.storage.results import CellResult, TaskScore, TaskSummary
from harness.storage.run_folder import Run

ADDED = "⁺"
"""The mark of languages that another package or file added to the task."""
PROVENANCE_MARKS = {"machine-translated": "†", "post-edited": "‡"}
_MEANINGS = {
    "machine-translated": "machine-translated test items",
    "post-edited": "test items translated by machine and edited by people",
}


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
    tasks = run.manifest.tasks
    scored = [cell for cell in run.cells if cell.status == "ok"]
    remarks = []
    for provenance, mark in PROVENANCE_MARKS.items():
        cells = [cell for cell in scored if cell.provenance == provenance and not _is_variant(cell)]
        titles = dict.fromkeys(map(_title, cells))
        if titles:
            remarks.append(
                Remark(
                    text=f"{mark} {_MEANINGS[provenance]}: {', '.join(titles)}",
                    brief=f"{counted(len(titles), 'test set')} {provenance} ({mark})",
                    weight=Weight.INCOMPARABLE,
                )
            )
    added: dict[str, str] = {}
    # The items of a variant that a translator made do not say how the language's own were made.
    for cell in sorted(scored, key=_is_variant):
        if is_added(cell.language, tasks[cell.task]):
            added.setdefault(_title(cell), _origin(cell, tasks[cell.task]))
    if added:
        names = ", ".join(f"{title} ({origin})" if origin else title for title, origin in added.items())
        meaning = f"added to the task by another package or file, not in the mean without {ADDED}"
        brief = f"{counted(len(added), 'test set')} added by another package or file ({ADDED})"
        remarks.append(Remark(text=f"{ADDED} {meaning}: {names}", brief=brief, weight=Weight.INCOMPARABLE))
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
    tasks = run.manifest.tasks
    if not any(
        is_added(code, tasks[row.task]) for row in rows if row is not None for code in row.by_language
    ):
        return []
    means = [None if row is None else _published_mean(row, tasks[row.task]) for row in rows]
    return [(f"{label} without {ADDED}", tuple(Score(value=mean) for mean in means))]


def _published_mean(row: TaskScore, spec: TaskSummary) -> float | None:
    values = [value for code, value in row.by_language.items() if not is_added(code, spec)]
    if len(values) == len(row.by_language):
        return float(row.value)
    return fmean(values) if values else None


def _is_variant(cell: CellResult) -> bool:
    return "translated" in (cell.data or {})


def _title(cell: CellResult) -> str:
    return f"{cell.task}:{cell.language}"


def _origin(cell: CellResult, spec: TaskSummary) -> str:
    provenance = "" if _is_variant(cell) else cell.provenance or ""
    plugin = spec.added.get(cell.language)
    return ", ".join(phrase for phrase in (provenance, f"from {plugin}" if plugin else "") if phrase)
