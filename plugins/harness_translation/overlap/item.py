"""The items of a run for measuring overlap: English items that the model got right, and their translations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness import DataError, ItemRecord, Run, TextInput, UnknownNameError, UsageError

__all__ = ["OverlapGroup", "SourceItem", "TargetCell", "overlap_groups", "read_inputs", "source_items"]

KIND = "sequence_classification"
TRANSLATION = ("variant", "translator")
"""The parts of a view that select the text of an item, but change neither model nor item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCell:
    """A cell whose texts are compared with the English ones."""

    cell: Mapping[str, Any]

    @property
    def language(self) -> str:
        """Return the code of the language of the test set."""
        language: str = self.cell["language"]
        return language

    @property
    def variant(self) -> str:
        """Return ``zs`` for the human translation; ``te``, ``tt`` or ``bt`` for machine translations."""
        return str(self.cell["view"].get("variant", "zs"))

    @property
    def translator(self) -> str | None:
        """Return the translator of a machine translation."""
        name = self.cell["view"].get("translator")
        return None if name is None else str(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapGroup:
    """The cells of one model on one task: the English cell and the cells that are compared with it."""

    task: str
    source: Mapping[str, Any]
    targets: tuple[TargetCell, ...]
    labels: tuple[str, ...]
    fields: tuple[str, ...]
    """Names of the input fields in the order of the model input; records sort them by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceItem:
    """An English item that the model got right."""

    id: str
    cluster: str | None
    input: TextInput


def overlap_groups(
    run: Run, tasks: Sequence[str], languages: Sequence[str], fields_of: Callable[[str], tuple[str, ...]]
) -> list[OverlapGroup]:
    """Return the comparisons of a run, restricted to `tasks` and `languages` if given.

    `fields_of` returns the names of a task's input fields.

    Raises:
        UsageError: If there is none: no task that classifies texts, no English cell, or no other language.
    """
    cells = [cell for cell in run.cells if cell["status"] == "ok"]
    known = {name for name, spec in run.manifest["tasks"].items() if spec["kind"] == KIND}
    for name in tasks:
        if name not in known:
            raise UnknownNameError(f"task of {str(run.path)!r} that classifies texts", name, known)
    codes = {cell["language"] for cell in cells}
    for code in languages:
        if code not in codes:
            raise UnknownNameError(f"language of {str(run.path)!r}", code, codes)
    groups = [
        group
        for task in sorted(known)
        if not tasks or task in tasks
        for group in _groups_of(
            run, task, [cell for cell in cells if cell["task"] == task], languages, fields_of
        )
    ]
    if not groups:
        raise UsageError(
            f"The run {str(run.path)!r} has nothing to compare: expected a task that classifies texts, finished in "
            "English and in another language.",
            hint="Make one: harness eval --tasks xnli --languages en,sw,ur --model hf:MODEL",
        )
    return groups


def _groups_of(
    run: Run,
    task: str,
    cells: Sequence[Mapping[str, Any]],
    languages: Sequence[str],
    fields_of: Callable[[str], tuple[str, ...]],
) -> Iterator[OverlapGroup]:
    spec = run.manifest["tasks"][task]
    source = spec.get("source") or "en"
    by_model: dict[str, list[Mapping[str, Any]]] = {}
    for cell in cells:
        by_model.setdefault(_model_key(cell), []).append(cell)
    for own in by_model.values():
        originals = [cell for cell in own if cell["language"] == source and not _is_translated(cell)]
        wanted = [
            TargetCell(cell=cell)
            for cell in own
            if cell["language"] != source and (not languages or cell["language"] in languages)
        ]
        if originals and wanted:
            yield OverlapGroup(
                task=task,
                source=originals[0],
                targets=tuple(wanted),
                labels=tuple(spec["labels"]),
                fields=fields_of(task),
            )


def _model_key(cell: Mapping[str, Any]) -> str:
    view = {name: value for name, value in cell["view"].items() if name not in TRANSLATION}
    return repr((cell["protocol"], cell["fit"], cell["method"], cell["seed"], sorted(view.items())))


def _is_translated(cell: Mapping[str, Any]) -> bool:
    return any(name in cell["view"] for name in TRANSLATION)


def source_items(run: Run, group: OverlapGroup) -> tuple[list[SourceItem], int]:
    """Return the English items whose label the model predicted, and the number of labelled items."""
    found: list[SourceItem] = []
    labelled = 0
    for record in run.records(group.source):
        if record.reference is None:
            continue
        labelled += 1
        if record.prediction["label"] == record.reference:
            texts = _text_input(run, record, group.fields)
            found.append(SourceItem(id=record.id, cluster=record.cluster, input=texts))
    if not found:
        raise DataError(
            f"The model got none of the {labelled:,} English items of {group.task!r} right; "
            "overlap is measured on items that it got right."
        )
    return found, labelled


def read_inputs(
    run: Run, group: OverlapGroup, target: TargetCell, ids: frozenset[str]
) -> Iterator[tuple[str, TextInput]]:
    """Yield (id, texts) of the items of a cell that are among `ids`."""
    for record in run.records(target.cell):
        if record.id in ids:
            yield record.id, _text_input(run, record, group.fields)


def _text_input(run: Run, record: ItemRecord, names: Sequence[str]) -> TextInput:
    found = record.fields.get("inputs") or {}
    if not found:
        raise DataError(
            f"The records of {str(run.path)!r} have no texts of item {record.id!r}: "
            "the run was written by an older version of the harness.",
            hint="Run it again; its fit is reused.",
        )
    if set(found) != set(names):
        raise DataError(
            f"Item {record.id!r} of {str(run.path)!r} has the fields {', '.join(sorted(found))}; "
            f"the task now has {', '.join(names)}."
        )
    texts = [found[name] for name in names]
    return TextInput(text=texts[0], text_pair=texts[1] if len(texts) > 1 else None)
