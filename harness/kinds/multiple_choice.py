"""Multiple choice: one of several texts goes with a context (XCOPA, COPA, Social IQa)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from harness.data.records import MultipleChoiceExample, Prediction, Row, is_tied
from harness.errors import ContractError, DataError
from harness.kinds.choosing import choice_methods
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, group_of, id_of, label_of, meta_of, text_of
from harness.kinds.methods import MethodContext, head_method
from harness.models.capabilities import Capability, Choice, ChoosesBest, Head
from harness.prompts.preset import PromptItem
from harness.specs.schema import Phrases, TaskSpec


class MultipleChoiceSpec(TaskSpec):
    """The spec of a multiple-choice task."""

    kind: Literal["multiple_choice"]
    inputs: Annotated[tuple[str, ...], Field(min_length=1)]
    """The fields of the context, joined by a space."""
    labels: Annotated[tuple[str, ...], Field(min_length=2)]
    """The fields of the choices; the gold label names one of them."""
    phrases: Phrases = Field(default_factory=dict)
    """Field of the context -> its value in the file -> the words that replace it."""
    fewer_choices: bool = False
    """Whether an item may have fewer choices than `labels`: those that are null in its row do not exist for it."""


def _example(row: Row, number: int, context: ReadContext) -> MultipleChoiceExample:
    inputs = {name: text_of(row, name, context) for name in context.inputs}
    label = label_of(row, context)
    names = _names(row, context)
    if label is not None and label not in names:
        raise DataError(
            f"{row.where}: the label of {context.owner!r} is {label!r}; expected one of the item's choices, "
            f"{', '.join(names)}."
        )
    return MultipleChoiceExample(
        id=id_of(row, number),
        cluster=cluster_of(row, context),
        group=group_of(row),
        meta=meta_of(row),
        context=" ".join(_phrase(name, value, row, context) for name, value in inputs.items()),
        choices=tuple(text_of(row, name, context) for name in names),
        label=None if label is None else names.index(label),
        names=names,
        inputs=inputs,
    )


def _names(row: Row, context: ReadContext) -> tuple[str, ...]:
    """Return the choices that an item has; raises `DataError` where fewer than two are left."""
    if not context.fewer_labels:
        return context.labels
    names = tuple(name for name in context.labels if row.fields.get(name, "") is not None)
    if len(names) < 2:
        raise DataError(
            f"{row.where}: expected two or more choices of {context.owner!r}, found {len(names)}."
        )
    return names


def _phrase(name: str, value: str, row: Row, context: ReadContext) -> str:
    phrases = context.phrases.get(name)
    if phrases is None:
        return value
    if value not in phrases:
        raise DataError(
            f"{row.where}: the field {name!r} of {context.owner!r} is {value!r}; "
            f"expected {' or '.join(map(repr, phrases))}."
        )
    return phrases[value]


def _reference(example: MultipleChoiceExample) -> str | None:
    return None if example.label is None else example.names[example.label]


def _predict_with_head(
    adapter: ChoosesBest, examples: Sequence[MultipleChoiceExample], context: MethodContext
) -> list[Prediction]:
    answered = adapter.choose(
        [Choice(context=example.context, choices=example.choices) for example in examples]
    )
    if len(answered) != len(examples):
        raise ContractError(f"choose() returned {len(answered)} answers to {len(examples)} items.")
    predictions = []
    for example, scores in zip(examples, answered, strict=True):
        if len(scores) != len(example.choices) or not np.isfinite(scores).all():
            raise ContractError(
                f"choose() returned the scores {scores} for the {len(example.choices)} choices of {example.id!r}."
            )
        output = {
            "label": example.names[int(np.argmax(scores))],
            "scores": [round(float(score), 6) for score in scores],
        }
        predictions.append(Prediction(id=example.id, output=output, tied=is_tied(scores)))
    return predictions


def _prompt_item(example: MultipleChoiceExample) -> PromptItem:
    fields = {
        "context": example.context,
        **dict(zip(example.names, example.choices, strict=True)),
        **example.inputs,
    }
    return PromptItem(fields=fields, choices=example.names, texts=example.choices, gold=_reference(example))


def _texts(example: MultipleChoiceExample, spec: TaskSpec) -> tuple[str, ...]:
    """Return the fields of the context, but for those that hold a word of the benchmark's own, and the choices."""
    context_texts = [text for name, text in example.inputs.items() if name not in spec.input_phrases]
    return (*context_texts, *example.choices)


METHODS = (
    head_method("multiple_choice", Capability.CHOOSES_BEST, _predict_with_head),
    *choice_methods("multiple_choice"),
)

KIND = TaskKind(
    name="multiple_choice",
    spec_model=MultipleChoiceSpec,
    head=Head.MULTIPLE_CHOICE,
    methods=("head", "rank", "generate"),
    example=_example,
    reference=_reference,
    summary="one of several texts goes with a context",
    prompt_item=_prompt_item,
    prompt_fields=lambda spec: (*spec.input_names, *spec.label_names, "context"),
    texts=_texts,
    sequences=lambda example: [(example.context, choice) for choice in example.choices],
)
