"""The items that people relabel: those of a task in one text, from its data files or from a run's records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness import ClassificationExample, MultipleChoiceExample, UnknownNameError, UsageError

if TYPE_CHECKING:
    from harness import ItemRecord, Run, Session, TaskEntry, TaskSpec
    from harness.data.sources import DataFinder

__all__ = [
    "ORIGINAL",
    "TEXT_VIEW",
    "AnnotationItem",
    "SheetText",
    "TextItems",
    "add_strata",
    "read_run_texts",
    "read_strata",
    "read_texts",
]

ORIGINAL: Final = "original"
"""The name of a task's own text, whose view has no variant."""
TEXT_VIEW: Final = ("variant", "translator")
"""The conditions of a cell that change its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetText:
    """The text of a sheet: a task, a language, and the version of the text."""

    task: str
    language: str
    view: Mapping[str, str] = field(default_factory=dict)
    """``variant`` and ``translator``; empty for the task's own text."""

    @property
    def version(self) -> str:
        """``original``, ``tt`` or ``tt (nllb)``."""
        translator = self.view.get("translator")
        name = self.view.get("variant", ORIGINAL)
        return name if translator is None else f"{name} ({translator})"

    def __str__(self) -> str:
        """Return ``xnli:hi original`` for messages."""
        return f"{self.task}:{self.language} {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationItem:
    """One item as a person sees it, with the label that it inherited."""

    id: str
    fields: Mapping[str, str]
    choices: Mapping[str, str] = field(default_factory=dict)
    """Label -> its text, if labels are choices between texts."""
    gold: str
    cluster: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Attributes to stratify by, in addition to the label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextItems:
    """All items of a task in one text."""

    text: SheetText
    labels: tuple[str, ...]
    parallel: bool
    """Whether an id means the same item in every language."""
    items: Sequence[AnnotationItem]
    provenance: str = ""
    """Where the text comes from, such as ``human-translated``."""


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
    from harness.specs.selection import select

    found: list[TextItems] = []
    for selected in select(session.catalog, tasks, None if languages is None else tuple(languages)):
        spec = selected.entry.spec
        if selected.missing:
            raise UnknownNameError(f"language of {spec.task!r}", selected.missing[0], list(spec.languages))
        for code in selected.languages:
            found += [
                _read_text(session, finder, selected.entry, code, name)
                for name in dict.fromkeys(variants or (ORIGINAL,))
            ]
    if not found:
        raise UsageError("No text is left to annotate: no language is both in --tasks and in --languages.")
    return found


def _read_text(session: Session, finder: DataFinder, entry: TaskEntry, code: str, variant: str) -> TextItems:
    from harness import ReadContext, read_examples
    from harness.data.sources import find_split

    spec, language = entry.spec, entry.languages.get(code)
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
    test = find_split(finder, source, spec.task, language, "test", entry.folders.get(code), {})
    kind = session.registry.kinds.get(spec.kind)
    context = ReadContext.of_test(spec, code, test.label_map)
    rows = list(finder.rows(test))
    examples = read_examples(kind, rows, context)
    own = {*spec.input_names, *spec.label_names, "label", "id"}
    attributes = [
        {name: str(value) for name, value in row.fields.items() if name not in own and _is_plain(value)}
        for row in rows
    ]
    return TextItems(
        text=SheetText(
            task=spec.task, language=code, view={} if variant == ORIGINAL else {"variant": variant}
        ),
        labels=spec.label_names,
        parallel=spec.pairs(code),
        items=[_item(spec, example, own) for example, own in zip(examples, attributes, strict=True)],
        provenance=_provenance(spec, code),
    )


def _provenance(spec: TaskSpec, code: str) -> str:
    language = spec.languages.get(code)
    return str(getattr(language, "provenance", "") or "")


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | bool)


def _item(spec: TaskSpec, example: Any, attributes: Mapping[str, str]) -> AnnotationItem:
    if not isinstance(example, ClassificationExample | MultipleChoiceExample):
        raise _unlabellable(spec.task, spec.kind)
    choices: dict[str, str] = {}
    gold: str | None
    if isinstance(example, MultipleChoiceExample):
        choices = dict(zip(example.names, example.choices, strict=True))
        gold = None if example.label is None else example.names[example.label]
    else:
        gold = example.label
    if gold is None:
        raise _unlabelled(spec.task)
    return AnnotationItem(
        id=example.id,
        fields=dict(example.inputs),
        choices=choices,
        gold=gold,
        cluster=example.cluster,
        attributes={**attributes, **example.meta},
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
    found: dict[tuple[Any, ...], TextItems] = {}
    for run in runs:
        for cell in run.cells:
            view = {name: cell["view"][name] for name in TEXT_VIEW if name in cell["view"]}
            text = SheetText(task=cell["task"], language=cell["language"], view=view)
            wanted = (
                cell["status"] == "ok"
                and (not tasks or text.task in tasks)
                and (languages is None or text.language in languages)
                and (not variants or view.get("variant", ORIGINAL) in variants)
            )
            key = (text.task, text.language, *sorted(view.items()))
            if wanted and key not in found:
                found[key] = _run_text(run, cell, text)
    if not found:
        names = sorted({str(cell["view"].get("variant", ORIGINAL)) for run in runs for cell in run.cells})
        raise UsageError(
            "The runs have no items of the requested tasks, languages and variants.",
            hint=f"Their texts are: {', '.join(names)}.",
        )
    return list(found.values())


def _run_text(run: Run, cell: Mapping[str, Any], text: SheetText) -> TextItems:
    summary = run.manifest["tasks"][text.task]
    spec = run.manifest.get("specs", {}).get(text.task, {})
    items = list(_record_items(run.records(cell), text.task, summary["kind"]))
    provenance = spec.get("languages", {}).get(text.language) or {}
    return TextItems(
        text=text,
        labels=tuple(summary["labels"]),
        parallel=bool(spec.get("parallel", False)) and text.language not in summary.get("unpaired", ()),
        items=items,
        provenance=str(provenance.get("provenance") or "") if not text.view else "",
    )


def _record_items(records: Iterator[ItemRecord], task: str, kind: str) -> Iterator[AnnotationItem]:
    for record in records:
        fields = record.fields
        if "inputs" not in fields or not isinstance(record.reference, str | None):
            raise _unlabellable(task, kind)
        if record.reference is None:
            raise _unlabelled(task)
        yield AnnotationItem(
            id=record.id,
            fields=fields["inputs"],
            choices=dict(zip(fields.get("names", ()), fields.get("choices", ()), strict=True)),
            gold=record.reference,
            cluster=record.cluster,
            attributes=record.tags,
        )


def read_strata(path: Path, text: TextItems) -> dict[str, str]:
    """Return the stratum of every item by its id.

    The file has lines ``id<TAB>stratum``, or one stratum per line in the order of the items. Raises `UsageError`
    if it is neither for these items.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The strata {str(path)!r} cannot be read: {error}.") from error
    ids = [item.id for item in text.items]
    if lines and all("\t" in line for line in lines):
        strata = dict(line.split("\t", 1) for line in lines)
    elif len(lines) == len(ids):
        strata = dict(zip(ids, lines, strict=True))
    else:
        raise UsageError(
            f"The strata {str(path)!r} have {len(lines)} lines for {len(ids)} items of {text.text}; "
            "expected one line per item, or lines of an id, a tab and a stratum."
        )
    missing = [identifier for identifier in ids if identifier not in strata]
    if missing:
        raise UsageError(
            f"The strata {str(path)!r} have no stratum for {len(missing)} items of {text.text}; "
            f"the first id is {missing[0]!r}."
        )
    return {identifier: stratum.strip() for identifier, stratum in strata.items()}


def add_strata(text: TextItems, name: str, strata: Mapping[str, str]) -> TextItems:
    """Return the items with the strata as a further attribute."""
    items = [replace(item, attributes={**item.attributes, name: strata[item.id]}) for item in text.items]
    return replace(text, items=items)
