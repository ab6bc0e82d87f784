"""Definition of a kind of task, and helpers of all kinds that turn rows into examples."""

from __future__ import annotations

import hashlib
import itertools
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from harness.data.records import Candidate, CandidatePool, Example, Row
from harness.errors import DataError, near_names
from harness.models.capabilities import Head
from harness.prompts.preset import PromptItem
from harness.specs.schema import Phrases, TaskSpec, TrainingSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadContext:
    """Context that turns rows of one split into examples."""

    owner: str
    """Name of the task or training set, for messages."""
    language: str
    split: str
    inputs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    label_map: Mapping[str, str] = field(default_factory=dict)
    cluster: str | None = None
    phrases: Phrases = field(default_factory=dict)
    fewer_labels: bool = False
    """Whether an item may have only some of the labels, as choices."""
    words: Mapping[str, str] = field(default_factory=dict)
    """`TaskSpec.row_words` of the language."""

    @classmethod
    def of(
        cls,
        spec: TaskSpec | TrainingSpec,
        owner: str,
        language: str,
        split: str,
        label_map: Mapping[str, str],
        *,
        cluster: str | None = None,
    ) -> Self:
        """Return the context for rows of a split of a task or training set."""
        return cls(
            owner=owner,
            language=language,
            split=split,
            inputs=spec.input_names,
            labels=spec.label_names,
            label_map=label_map,
            cluster=cluster,
            phrases=spec.input_phrases,
            fewer_labels=getattr(spec, "fewer_choices", False),
            words=spec.row_words(language) if isinstance(spec, TaskSpec) else {},
        )

    @classmethod
    def of_test(cls, spec: TaskSpec, language: str, label_map: Mapping[str, str]) -> Self:
        """Return the context for rows of a task's test split in a language."""
        return cls.of(spec, spec.task, language, "test", label_map, cluster=spec.cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskKind:
    """A kind of task, declared by a plugin."""

    name: str
    spec_model: type[TaskSpec]
    """The keys of its specs."""
    head: Head | None
    """Head that its training sets train."""
    methods: tuple[str, ...]
    """Names of its methods, preferred ones first."""
    example: Callable[[Row, int, ReadContext], Example]
    """Row and 1-based number of the item -> example; raises `DataError` with file and line."""
    reference: Callable[[Any], Any]
    """Example -> the reference that metrics get, a plain JSON value; None for an unlabelled item."""
    candidate: Callable[[Row, ReadContext], Candidate] | None = None
    """For kinds whose spec has a pool of its own: one of its rows -> a candidate."""
    join: Callable[[Sequence[Any], CandidatePool], list[Any]] | None = None
    """Examples and their pool -> the examples with their targets; raises `DataError` where a gold is not in it."""
    summary: str = ""
    prompt_item: Callable[[Any], PromptItem] | None = None
    """Example -> what the templates of a prompt see of it; None for kinds that are not prompted."""
    prompt_fields: Callable[[TaskSpec | TrainingSpec], tuple[str, ...]] | None = None
    """The names of the fields that `prompt_item` gives for a spec, so that prompts are checked before any data."""
    texts: Callable[[Any, TaskSpec], tuple[str, ...]] | None = None
    """Example -> its own texts in its language, without words that a spec or prompt adds: what the equity ledger
    counts. None for kinds without."""
    sequences: Callable[[Any], Sequence[tuple[str, ...]]] | None = None
    """Example -> the texts that `classify`, `choose` or `embed` reads together, as one or two; None for kinds that are
    asked in other ways."""
    remark: Callable[[Sequence[Any], Sequence[Any]], str | None] | None = None
    """Items of a cell, and all of its split -> what a reader of their score must know; None where that is nothing."""


def read_examples(kind: TaskKind, rows: Iterable[Row], context: ReadContext) -> list[Any]:
    """Return the examples of a split.

    Raises `DataError` where a row is malformed, some items are labelled and others not, or the split holds no
    items. Ids must be unique where items are scored; in training data, where published files repeat them, the
    second ``7`` becomes ``7#2``.
    """
    examples: list[Example] = []
    where_by_id: dict[str, str] = {}
    repeated: Counter[str] = Counter()
    labels = _LabelCheck(kind)
    for number, row in enumerate(rows, start=1):
        example = kind.example(row, number, context)
        if context.split == "train":
            repeated[example.id] += 1
            if repeated[example.id] > 1:
                example = replace(example, id=f"{example.id}#{repeated[example.id]}")
        elif example.id in where_by_id:
            raise _repeated(example.id, row, where_by_id[example.id], context)
        where_by_id[example.id] = row.where
        labels.add(row, example)
        examples.append(example)
    if not examples:
        raise _nothing_in(context)
    return examples


def iter_examples(kind: TaskKind, rows: Callable[[], Iterable[Row]], context: ReadContext) -> Iterator[Any]:
    """Yield the examples of a scored split, in memory that hardly grows: 8 bytes per item.

    Raises what `read_examples` does, in the same words; a repeated id is reported after the last item, or before
    another fault. A run must therefore go through all of them before it uses the first one.

    Args:
        kind: Whose examples they are.
        rows: Called for the rows, and once more where an id seems to repeat, to name the two places.
        context: Of a split that is not ``train``, whose ids may repeat.
    """
    if context.split == "train":
        raise ValueError("The ids of training data may repeat; read them with 'read_examples'.")
    # Hashes of equal ids are equal; that those of others may be too is settled by `_check_repeated`.
    hashes = array("q")
    labels = _LabelCheck(kind)
    try:
        for number, row in enumerate(rows(), start=1):
            example = kind.example(row, number, context)
            hashes.append(hash(example.id))
            labels.add(row, example)
            yield example
    except DataError:
        _check_repeated(kind, rows, context, hashes)
        raise
    if not hashes:
        raise _nothing_in(context)
    _check_repeated(kind, rows, context, hashes)


def _check_repeated(
    kind: TaskKind, rows: Callable[[], Iterable[Row]], context: ReadContext, hashes: array[int]
) -> None:
    """Raise `DataError` at the first item whose id an earlier one has; `hashes` are those of the items to look at."""
    import numpy as np

    ordered = np.sort(np.frombuffer(hashes, dtype=np.int64))
    suspects = set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
    if not suspects:
        return
    where_by_id: dict[str, str] = {}
    for number, row in enumerate(itertools.islice(rows(), len(hashes)), start=1):
        example = kind.example(row, number, context)
        if hash(example.id) not in suspects:
            continue
        if example.id in where_by_id:
            raise _repeated(example.id, row, where_by_id[example.id], context)
        where_by_id[example.id] = row.where


_SKIP_UNANSWERABLE = (
    "Sets with unanswerable questions (SQuAD 2) need 'options: {unanswerable: skip}' in its spec."
)


class _LabelCheck:
    """Rejects a file in which some items are labelled, or have an id, and others are not, or have none."""

    def __init__(self, kind: TaskKind) -> None:
        self._kind = kind
        self._labelled: bool | None = None
        self._has_id: bool | None = None

    def add(self, row: Row, example: Any) -> None:
        has_label = self._kind.reference(example) is not None
        if self._labelled not in (None, has_label):
            raise DataError(
                f"{row.where}: this item is {'' if has_label else 'not '}labelled, while earlier ones are"
                f"{' not' if has_label else ''}; expected a fully labelled or a fully unlabelled file.",
                hint=_SKIP_UNANSWERABLE if "answers" in row.fields else None,
            )
        self._labelled, has_id = has_label, "id" in row.fields
        if self._has_id not in (None, has_id):
            raise DataError(
                f"{row.where}: expected an id in every item or in none, found one {'with' if has_id else 'without'}."
            )
        self._has_id = has_id


def _repeated(identifier: str, row: Row, place: str, context: ReadContext) -> DataError:
    return DataError(
        f"{row.where}: the item id {identifier!r} was already used at {place}; "
        f"ids must be unique in the {context.split} split of {context.owner!r}."
    )


def _nothing_in(context: ReadContext) -> DataError:
    return DataError(
        f"The {context.split} split of {context.owner!r} in {context.language!r} holds no items."
    )


def id_of(row: Row, number: int) -> str:
    """Return the field ``id``, or the number of the item where there is none.

    Raises `DataError` for an empty id, null, and what is neither a text nor a number.
    """
    value = row.fields.get("id", number)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        description = (
            "null" if value is None else "an empty text" if isinstance(value, str) else type(value).__name__
        )
        raise DataError(
            f"{row.where}: expected the id of an item as a text or a number, found {description}."
        )
    return str(value)


def text_of(row: Row, name: str, context: ReadContext) -> str:
    """Return a text field; raises `DataError` where it is missing or no text."""
    value = row.fields.get(name)
    if not isinstance(value, str):
        description = ", ".join(sorted(row.fields)) if value is None else type(value).__name__
        raise DataError(
            f"{row.where}: expected the text field {name!r} of {context.owner!r}, found {description}.",
            hint="Name the file's columns with 'columns' in the spec.",
        )
    return value


def label_of(row: Row, context: ReadContext, *, name: str = "label") -> str | None:
    """Return the label, mapped and checked against the spec's labels; None where the row has none."""
    value = row.fields.get(name)
    if value is None:
        if name not in row.fields:
            _check_unlabelled(row, context, name)
        return None
    return known_label(str(value).strip(), context, where=f"{row.where}: unknown label")


def known_label(raw: str, context: ReadContext, *, where: str, labels: Sequence[str] = ()) -> str:
    """Return a label, mapped; raises `DataError`, which begins with `where`, for one that is not among the labels.

    `labels` are those of the spec where none are given.
    """
    label, allowed = context.label_map.get(raw, raw), labels or context.labels
    if label not in allowed:
        near = near_names(label, allowed)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise DataError(
            f"{where} {raw!r}; expected one of {', '.join(allowed)} (task {context.owner!r}).{meant}"
        )
    return label


def _check_unlabelled(row: Row, context: ReadContext, name: str) -> None:
    """Raise `DataError` where a row without the field of the label has a label in another field."""
    near = near_names(name, row.fields)
    for field_name, value in row.fields.items():
        raw = str(value).strip()
        is_label = context.label_map.get(raw, raw) in context.labels
        # Numbers may be ids as well.
        if is_label and (field_name in near or not raw.isdecimal()):
            raise DataError(
                f"{row.where}: expected the label of {context.owner!r} in the field {name!r}, found the label {raw!r} "
                f"in {field_name!r}.",
                hint=f"Name it with 'columns' in the spec: {name}={field_name}.",
            )


def cluster_of(row: Row, context: ReadContext) -> str | None:
    """Return the value that marks items to be resampled together; long texts as a short digest.

    None where the spec names no such field, or the field is null. Raises `DataError` where the row has no such field:
    the items would be taken for independent, and the intervals would be too narrow.
    """
    if context.cluster is None:
        return None
    if context.cluster not in row.fields:
        near = near_names(context.cluster, row.fields)
        meant = f" Did you mean {near[0]!r}?" if near else f" It has: {', '.join(sorted(row.fields))}."
        raise DataError(
            f"{row.where}: this item has no field {context.cluster!r}, which 'cluster' of {context.owner!r} "
            f"names.{meant}"
        )
    if row.fields[context.cluster] is None:
        return None
    value = str(row.fields[context.cluster])
    return value if len(value) <= 24 else hashlib.blake2b(value.encode(), digest_size=8).hexdigest()


def group_of(row: Row) -> str | None:
    """Return the field ``group``: the subset of the items that is also scored by itself; None where there is none."""
    group = row.fields.get("group")
    return None if group is None else str(group)


def meta_of(row: Row, field: str = "meta") -> dict[str, str]:
    """Return a field with further attributes by name; raises `DataError` where it is no mapping."""
    attributes = row.fields.get(field)
    if attributes is None:
        return {}
    if not isinstance(attributes, Mapping):
        raise DataError(
            f"{row.where}: expected the field {field!r} as attributes by name, found {type(attributes).__name__}."
        )
    return {str(name): str(value) for name, value in attributes.items()}
