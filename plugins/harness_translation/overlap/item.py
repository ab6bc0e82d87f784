"""The items of a run for measuring overlap: English items that the model got right, and their translations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness import DataError, Run, UnknownNameError, UsageError
from harness.models import TextInput
from harness.storage import CellResult, ItemRecord

KIND = "sequence_classification"
TRANSLATION = ("variant", "translator")
"""The parts of a view that select the text of an item, but change neither model nor item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapGroup:
    """The cells of one model on one task: the English cell and the cells that are compared with it."""

    task: str
    source: CellResult
    targets: tuple[CellResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceItem:
    """An English item that the model got right."""

    id: str
    cluster: str | None
    input: TextInput


def overlap_groups(run: Run, tasks: Sequence[str], languages: Sequence[str]) -> list[OverlapGroup]:
    """Return the comparisons of a run, restricted to `tasks` and `languages` if given.

    Raises:
        UsageError: If there is none: no task that classifies texts, no English cell, or no other language.
    """
    finished = [cell for cell in run.cells if cell.status == "ok"]
    task_names = {name for name, spec in run.manifest.tasks.items() if spec.kind == KIND}
    for name in tasks:
        if name not in task_names:
            raise UnknownNameError(f"task of {str(run.path)!r} that classifies texts", name, task_names)
    codes = {cell.language for cell in finished}
    for code in languages:
        if code not in codes:
            raise UnknownNameError(f"language of {str(run.path)!r}", code, codes)
    by_model: dict[tuple[str, str], list[CellResult]] = {}
    for cell in sorted(finished, key=lambda cell: str(cell.task)):
        if cell.task in (tasks or task_names):
            by_model.setdefault((cell.task, _model_key(cell)), []).append(cell)
    groups = []
    for (task, _), cells in by_model.items():
        source = run.manifest.tasks[task].source or "en"
        originals = [cell for cell in cells if cell.language == source and not {*TRANSLATION} & {*cell.view}]
        targets = [
            cell for cell in cells if cell.language in (languages or codes) and cell.language != source
        ]
        if originals and targets:
            groups.append(OverlapGroup(task=task, source=originals[0], targets=tuple(targets)))
    if not groups:
        raise UsageError(
            f"The run {str(run.path)!r} has nothing to compare: expected a task that classifies texts, finished in "
            "English and in another language.",
            hint="Make one: harness eval --tasks xnli --languages en,sw,ur --model hf:MODEL",
        )
    return groups


def _model_key(cell: CellResult) -> str:
    view = {name: value for name, value in cell.view.items() if name not in TRANSLATION}
    return repr((cell.protocol, cell.fit, cell.method, cell.seed, sorted(view.items())))


def source_items(run: Run, group: OverlapGroup, names: Sequence[str]) -> tuple[list[SourceItem], int]:
    """Return the English items whose label the model predicted, and the number of labelled items.

    `names` are the task's input fields in the order of the model input; records sort them by name. Raises `DataError`
    without such items, or for records with other fields.
    """
    labelled = [record for record in run.records(group.source) if record.reference is not None]
    items = [
        SourceItem(id=record.id, cluster=record.cluster, input=_text_input(run, record, names))
        for record in labelled
        if record.prediction["label"] == record.reference
    ]
    if not items:
        raise DataError(
            f"The model got none of the {len(labelled):,} English items of {group.task!r} right; "
            "overlap is measured on items that it got right."
        )
    return items, len(labelled)


def read_inputs(
    run: Run, target: CellResult, ids: frozenset[str], names: Sequence[str]
) -> Iterator[tuple[str, TextInput]]:
    """Yield (id, texts) of the items of a cell that are among `ids`."""
    for record in run.records(target):
        if record.id in ids:
            yield record.id, _text_input(run, record, names)


def _text_input(run: Run, record: ItemRecord, names: Sequence[str]) -> TextInput:
    inputs = record.fields.get("inputs") or {}
    if set(inputs) != set(names):
        raise DataError(
            f"Item {record.id!r} of {str(run.path)!r} has the fields {', '.join(sorted(inputs)) or '(none)'}; "
            f"the task now has {', '.join(names)}.",
            hint="Run it again; its fit is reused.",
        )
    texts = [inputs[name] for name in names]
    return TextInput(text=texts[0], text_pair=texts[1] if len(texts) > 1 else None)
