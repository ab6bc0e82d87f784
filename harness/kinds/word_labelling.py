"""Word labelling: some words of a sentence carry a label, such as their grammatical case (Vyakarana)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from harness.data.records import LabelledWords, Row
from harness.errors import DataError
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, group_of, id_of, known_label, meta_of
from harness.kinds.methods import Method
from harness.specs.schema import TaskSpec


class WordLabellingSpec(TaskSpec):
    """The spec of a word labelling task."""

    kind: Literal["word_labelling"]
    labels: Annotated[tuple[str, ...], Field(min_length=2)]


def _example(row: Row, number: int, context: ReadContext) -> LabelledWords:
    tokens = tuple(str(token) for token in row.fields.get("tokens") or ())
    if not tokens:
        raise DataError(f"{row.where}: expected a sentence with tokens, found none.")
    raw_labels = row.fields.get("labels")
    if raw_labels is None:
        targets, labels = _given_targets(row, len(tokens)), None
    else:
        if len(raw_labels) != len(tokens):
            raise DataError(
                f"{row.where}: the sentence has {len(tokens)} tokens and {len(raw_labels)} labels; expected one a "
                "token, null for words without."
            )
        targets = tuple(position for position, label in enumerate(raw_labels) if label is not None)
        labels = tuple(
            known_label(str(raw_labels[position]), context, where=f"{row.where}: unknown label")
            for position in targets
        )
    return LabelledWords(
        id=id_of(row, number),
        cluster=cluster_of(row, context),
        group=group_of(row),
        meta=meta_of(row),
        tokens=tokens,
        targets=targets,
        labels=labels,
    )


def _given_targets(row: Row, size: int) -> tuple[int, ...]:
    """Return the positions whose labels an unlabelled file asks for; raises `DataError` where it does not say."""
    raw_targets = row.fields.get("targets")
    if not isinstance(raw_targets, list | tuple) or not all(
        type(position) is int for position in raw_targets
    ):
        raise DataError(
            f"{row.where}: expected 'labels', or 'targets' with the positions of the words to be labelled, found "
            f"{raw_targets!r}."
        )
    targets = tuple(raw_targets)
    if sorted(set(targets)) != list(targets) or (targets and not 0 <= targets[0] <= targets[-1] < size):
        raise DataError(
            f"{row.where}: expected 'targets' rising from 0 to {size - 1}, found {', '.join(map(str, targets))}."
        )
    return targets


def _reference(example: Any) -> list[str] | None:
    return None if example.labels is None else list(example.labels)


METHODS: Final[tuple[Method, ...]] = ()
"""None in the core: the method ``probe`` comes from a plugin."""

KIND = TaskKind(
    name="word_labelling",
    spec_model=WordLabellingSpec,
    head=None,
    methods=("probe",),
    example=_example,
    reference=_reference,
    summary="some words of a sentence get a label",
    texts=lambda example, spec: (" ".join(example.tokens),),
)
