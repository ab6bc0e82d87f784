"""The items that people relabel, of data files or of a run's records, and the key: the item behind each row of a sheet.

Annotators must not see the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness import DataError, UnknownNameError, UsageError
from harness.data import ClassificationExample, MultipleChoiceExample
from harness.storage import CellResult, write_atomically

if TYPE_CHECKING:
    from harness import Run
    from harness.data import DataFinder
    from harness.running import Session
    from harness.specs import TaskEntry
    from harness.storage import ItemRecord

ORIGINAL: Final = "original"
"""The name of a task's own text, whose view has no variant."""
TEXT_VIEW: Final = ("variant", "translator")
"""The conditions of a cell that change its text."""
KEY: Final = "key.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationItem:
    """One item as a person sees it, with the label that it inherited."""

    id: str
    fields: Mapping[str, str]
    choices: Mapping[str, str] = field(default_factory=dict)
    """Label -> its text, if labels are choices between texts."""
    gold: str
    digest: str = ""
    """As the records of runs name its texts."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Attributes to stratify by, in addition to the label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextItems:
    """All items of a task in one language and version of the text."""

    task: str
    language: str
    view: Mapping[str, str] = field(default_factory=dict)
    """``variant`` and ``translator``; empty for the task's own text."""
    labels: tuple[str, ...]
    parallel: bool
    """Whether an id means the same item in every language."""
    items: Sequence[AnnotationItem]
    provenance: str = ""
    """Where the text comes from, such as ``human-translated``."""

    def __str__(self) -> str:
        """Return ``xnli:hi original`` or ``xnli:hi tt (nllb)`` for messages."""
        return f"{self.task}:{self.language} {_version_name(self.view)}"


def _version_name(view: Mapping[str, str]) -> str:
    """Return the name of a text's version: ``original``, ``tt`` or ``tt (nllb)``."""
    name = view.get("variant", ORIGINAL)
    return f"{name} ({view['translator']})" if "translator" in view else name


def read_texts(
    session: Session,
    finder: DataFinder,
    tasks: Sequence[str],
    languages: Sequence[str] | None,
    variants: Sequence[str],
) -> list[TextItems]:
    """Return the test items of every requested language and variant.

    Raises `UsageError` for a task whose items have no single label, or for a language or variant that the task
    does not have; `DataError` if the items cannot be read.
    """
    from harness.specs import select

    texts: list[TextItems] = []
    for selected in select(session.catalog, tasks, None if languages is None else tuple(languages)):
        spec = selected.entry.spec
        if selected.missing:
            raise UnknownNameError(f"language of {spec.task!r}", selected.missing[0], list(spec.languages))
        for code in selected.languages:
            texts += [
                _read_text(session, finder, selected.entry, code, name)
                for name in dict.fromkeys(variants or (ORIGINAL,))
            ]
    if not texts:
        raise UsageError("No text is left to annotate: no language is both in --tasks and in --languages.")
    return texts


def _read_text(session: Session, finder: DataFinder, entry: TaskEntry, code: str, variant: str) -> TextItems:
    from harness.data import find_split
    from harness.kinds import ReadContext, read_examples

    spec = entry.spec
    source = spec.source(code, "test")
    if variant != ORIGINAL:
        if variant not in spec.variants:
            raise UnknownNameError(
                f"variant of {spec.task!r}",
                variant,
                [ORIGINAL, *spec.variants],
                hint="To use the texts of a run: --run RUN.",
            )
        source = spec.variants[variant].splits.get("test", source)
    if source is None or spec.axes:
        raise UsageError(f"The task {spec.task!r} has no single test split in {code!r} to label.")
    test = find_split(
        finder, source, spec.task, entry.languages.get(code), "test", entry.folders.get(code), {}
    )
    rows = list(finder.rows(test))
    context = ReadContext.of_test(spec, code, test.label_map)
    examples = read_examples(session.registry.kinds.get(spec.kind), rows, context)
    reserved = {*spec.input_names, *spec.label_names, "label", "id"}
    items = []
    for row, example in zip(rows, examples, strict=True):
        if not isinstance(example, ClassificationExample | MultipleChoiceExample):
            raise _unlabellable(spec.task, spec.kind)
        plain = {name: str(value) for name, value in row.fields.items() if isinstance(value, str | int)}
        attributes = {name: value for name, value in plain.items() if name not in reserved}
        items.append(_example_item(spec.task, example, {**attributes, **example.meta}))
    return TextItems(
        task=spec.task,
        language=code,
        view={} if variant == ORIGINAL else {"variant": variant},
        labels=spec.label_names,
        parallel=spec.pairs(code),
        items=items,
        provenance=spec.provenance_of(code) or "",
    )


def _example_item(
    task: str, example: ClassificationExample | MultipleChoiceExample, attributes: Mapping[str, str]
) -> AnnotationItem:
    from harness.running import inputs_digest

    choices: dict[str, str] = {}
    gold: str | None
    if isinstance(example, MultipleChoiceExample):
        choices = dict(zip(example.names, example.choices, strict=True))
        gold = None if example.label is None else example.names[example.label]
    else:
        gold = example.label
    if gold is None:
        raise _unlabelled(task)
    return AnnotationItem(
        id=example.id,
        fields=dict(example.inputs),
        choices=choices,
        gold=gold,
        digest=inputs_digest(example),
        attributes=attributes,
    )


def _unlabellable(task: str, kind: str) -> UsageError:
    return UsageError(
        f"The task {task!r} is of the kind {kind!r}, whose items have no single label; "
        "expected 'sequence_classification' or 'multiple_choice'."
    )


def _unlabelled(task: str) -> UsageError:
    return UsageError(f"The test items of {task!r} have no labels to compare annotators with.")


def read_run_texts(
    runs: Sequence[Run], tasks: Sequence[str], languages: Sequence[str] | None, variants: Sequence[str]
) -> list[TextItems]:
    """Return the items of every text of the runs; empty `tasks` and `variants` select all.

    Raises `UsageError` if none is left or a task's items have no single label, `DataError` for broken records.
    """
    texts: dict[tuple[Any, ...], TextItems] = {}
    for run in runs:
        for cell in run.cells:
            view: dict[str, str] = {name: cell.view[name] for name in TEXT_VIEW if name in cell.view}
            selected = (
                cell.status == "ok"
                and "split" not in cell.view  # The ids of dev items may be those of test items.
                and (not tasks or cell.task in tasks)
                and (languages is None or cell.language in languages)
                and (not variants or view.get("variant", ORIGINAL) in variants)
            )
            key = (cell.task, cell.language, *sorted(view.items()))
            if selected and key not in texts:
                texts[key] = _run_text(run, cell, view)
    if not texts:
        names = sorted({str(cell.view.get("variant", ORIGINAL)) for run in runs for cell in run.cells})
        raise UsageError(
            "The runs have no items of the requested tasks, languages and variants.",
            hint=f"Their texts are: {', '.join(names)}.",
        )
    return list(texts.values())


def _run_text(run: Run, cell: CellResult, view: Mapping[str, str]) -> TextItems:
    task, language = cell.task, cell.language
    summary = run.manifest.tasks[task]
    spec = run.manifest.specs.get(task, {})
    return TextItems(
        task=task,
        language=language,
        view=view,
        labels=tuple(summary.labels),
        parallel=bool(spec.get("parallel", False)) and language not in summary.unpaired,
        items=[_record_item(record, task, summary.kind) for record in run.records(cell)],
        provenance="" if view else cell.provenance or "",
    )


def _record_item(record: ItemRecord, task: str, kind: str) -> AnnotationItem:
    fields = record.fields
    if "inputs" not in fields or not isinstance(record.reference, str | None):
        raise _unlabellable(task, kind)
    if record.reference is None:
        raise _unlabelled(task)
    return AnnotationItem(
        id=record.id,
        fields=fields["inputs"],
        choices=dict(zip(fields.get("names", ()), fields.get("choices", ()), strict=True)),
        gold=record.reference,
        digest=record.inputs_digest,
        attributes=record.tags,
    )


class SheetRow(BaseModel):
    """A row of a sheet and the item behind it."""

    model_config = ConfigDict(frozen=True)

    row: str
    """The name that annotators see: a digest."""
    id: str
    gold: str
    """The inherited label."""
    digest: str = ""
    """As the records of runs name the item's texts; empty in older keys."""
    stratum: str
    weight: float
    """The number of items of the test set that it represents."""
    fields: dict[str, str]
    choices: dict[str, str] = {}
    """Label -> its text, if labels are choices between texts."""


class Sheet(BaseModel):
    """The rows of one text, in an arbitrary order."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    name: str = Field(validation_alias="sheet", serialization_alias="sheet")
    task: str
    language: str
    view: dict[str, str]
    """``variant`` and ``translator``; empty for the task's own text."""
    labels: tuple[str, ...]
    provenance: str
    design: str
    """``simple`` or ``stratified by label``."""
    population: int
    """The number of items of the whole text."""
    rows: tuple[SheetRow, ...]

    @cached_property
    def by_row(self) -> Mapping[str, SheetRow]:
        """The rows by their names."""
        return {row.row: row for row in self.rows}

    @property
    def text(self) -> str:
        """The version of the text and, for the task's own, where it comes from."""
        provenance = f", {self.provenance}" if self.provenance and not self.view else ""
        return f"{_version_name(self.view)}{provenance}"


class Key(BaseModel):
    """All sheets of an annotation."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    version: Literal[1] = Field(default=1, validation_alias="schema", serialization_alias="schema")
    seed: int
    annotators: tuple[str, ...]
    instructions: dict[str, tuple[str, ...]]
    """The instructions for annotators, by task and paragraph."""
    sheets: tuple[Sheet, ...]

    def sheet_of(self, row: str) -> Sheet | None:
        """Return the sheet of a row."""
        return next((sheet for sheet in self.sheets if row in sheet.by_row), None)


def sheet_names(texts: Sequence[TextItems], seed: int) -> list[str]:
    """Return a name for the sheet of every text that does not reveal its version: ``xnli-hi-1``."""
    order = sorted(range(len(texts)), key=lambda number: _digest(seed, "sheet", *_identity(texts[number])))
    counts: dict[str, int] = {}
    names = [""] * len(texts)
    for number in order:
        head = f"{texts[number].task}-{texts[number].language}"
        counts[head] = counts.get(head, 0) + 1
        names[number] = f"{head}-{counts[head]}"
    return names


def row_name(text: TextItems, identifier: str, seed: int) -> str:
    """Return the name of a row, which reveals neither the item nor its label."""
    return _digest(seed, *_identity(text), identifier)[:10]


def _identity(text: TextItems) -> tuple[str, ...]:
    return text.task, text.language, *(f"{name}={value}" for name, value in sorted(text.view.items()))


def _digest(*parts: object) -> str:
    return blake2b(json.dumps(parts).encode(), digest_size=16, person=b"harness row").hexdigest()


def write_key(key: Key, folder: Path) -> None:
    """Write the key into the folder of an annotation."""
    write_atomically(folder / KEY, key.model_dump_json(by_alias=True, indent=1) + "\n")


def read_key(folder: Path) -> Key:
    """Return the key of an annotation; raises `UsageError` if there is none, `DataError` for a broken one."""
    path = folder / KEY
    try:
        return Key.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise UsageError(
            f"The folder {str(folder)!r} has no {KEY}, so its rows are unknown.",
            hint="Make one: harness annotate export --tasks xnli --languages hi --output DIR",
        ) from error
    except OSError as error:
        raise DataError(f"The key {str(path)!r} cannot be read: {error}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"])) or "the file"
        raise DataError(f"The key {str(path)!r} is damaged: {location!r}: {first['msg']}.") from error
