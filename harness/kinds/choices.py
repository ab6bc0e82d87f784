"""Kinds whose answer is one of several names: labels of texts (XNLI, PAWS-X), and choices (XCOPA, COPA, Social IQa)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from harness.data.records import ClassificationExample, MultipleChoiceExample, Prediction, Row, is_tied
from harness.errors import ContractError, DataError
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, group_of, id_of, label_of, meta_of, text_of
from harness.kinds.methods import MethodContext, choice_methods, head_method
from harness.models.capabilities import Capability, Choice, ChoosesBest, Classifies, Head, TextInput
from harness.prompts.preset import PromptItem
from harness.specs.schema import Phrases, TaskSpec


class SequenceClassificationSpec(TaskSpec):
    """The spec of a sequence classification task."""

    kind: Literal["sequence_classification"]
    inputs: Annotated[tuple[str, ...], Field(min_length=1, max_length=2)]
    labels: Annotated[tuple[str, ...], Field(min_length=2)]
    mask_word: Annotated[str, Field(pattern=r"^\S+$")] | None = None
    """The word of the input that marks a masked one: methods that read words put the model's own mask there."""


def _labelled_example(row: Row, number: int, context: ReadContext) -> ClassificationExample:
    return ClassificationExample(
        id=id_of(row, number),
        cluster=cluster_of(row, context),
        group=group_of(row),
        meta=meta_of(row),
        inputs={name: text_of(row, name, context) for name in context.inputs},
        label=label_of(row, context),
        labels=context.labels,
    )


def _label(example: ClassificationExample) -> str | None:
    return example.label


def _text_input(example: ClassificationExample) -> TextInput:
    """Return the input of a classifier: the first field, and the second one as the pair's other side."""
    texts = list(example.inputs.values())
    return TextInput(text=texts[0], text_pair=texts[1] if len(texts) > 1 else None)


def _classify(
    adapter: Classifies, examples: Sequence[ClassificationExample], context: MethodContext
) -> list[Prediction]:
    labels = context.spec.label_names
    scores = np.asarray(adapter.classify([_text_input(example) for example in examples], labels))
    if scores.shape != (len(examples), len(labels)):
        raise ContractError(
            f"classify() returned scores of shape {scores.shape}; expected {(len(examples), len(labels))}."
        )
    if not np.isfinite(scores).all():
        raise ContractError(f"classify() returned scores that are not finite for task {context.spec.task!r}.")
    best = scores.argmax(axis=1)
    return [
        Prediction(id=example.id, output=_label_output(labels[index], row), tied=is_tied(row))
        for example, index, row in zip(examples, best.tolist(), scores.tolist(), strict=True)
    ]


def _label_output(label: str, scores: Sequence[float]) -> dict[str, Any]:
    return {"label": label, "scores": [round(float(score), 6) for score in scores]}


def _labelled_item(example: ClassificationExample) -> PromptItem:
    return PromptItem(fields=example.inputs, choices=example.labels, gold=example.label)


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


def _choice_example(row: Row, number: int, context: ReadContext) -> MultipleChoiceExample:
    inputs = {name: text_of(row, name, context) for name in context.inputs}
    label = label_of(row, context)
    names = _choice_names(row, context)
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


def _choice_names(row: Row, context: ReadContext) -> tuple[str, ...]:
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


def _right_choice(example: MultipleChoiceExample) -> str | None:
    return None if example.label is None else example.names[example.label]


def _choose(
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
        output = _label_output(example.names[int(np.argmax(scores))], scores)
        predictions.append(Prediction(id=example.id, output=output, tied=is_tied(scores)))
    return predictions


def _choice_item(example: MultipleChoiceExample) -> PromptItem:
    fields = {
        "context": example.context,
        **dict(zip(example.names, example.choices, strict=True)),
        **example.inputs,
    }
    return PromptItem(
        fields=fields, choices=example.names, texts=example.choices, gold=_right_choice(example)
    )


def _choice_texts(example: MultipleChoiceExample, spec: TaskSpec) -> tuple[str, ...]:
    """Return the fields of the context, but for those that hold a word of the benchmark's own, and the choices."""
    context_texts = [text for name, text in example.inputs.items() if name not in spec.input_phrases]
    return (*context_texts, *example.choices)


METHODS = (
    head_method("sequence_classification", Capability.CLASSIFIES, _classify),
    *choice_methods("sequence_classification"),
    head_method("multiple_choice", Capability.CHOOSES_BEST, _choose),
    *choice_methods("multiple_choice"),
)

SEQUENCE_CLASSIFICATION = TaskKind(
    name="sequence_classification",
    spec_model=SequenceClassificationSpec,
    head=Head.CLASSIFICATION,
    methods=("head", "rank", "generate", "probe"),
    example=_labelled_example,
    reference=_label,
    summary="a text or a pair of texts gets one label",
    prompt_item=_labelled_item,
    prompt_fields=lambda spec: spec.input_names,
    texts=lambda example, spec: tuple(example.inputs.values()),
    sequences=lambda example: [tuple(example.inputs.values())],
)

MULTIPLE_CHOICE = TaskKind(
    name="multiple_choice",
    spec_model=MultipleChoiceSpec,
    head=Head.MULTIPLE_CHOICE,
    methods=("head", "rank", "generate"),
    example=_choice_example,
    reference=_right_choice,
    summary="one of several texts goes with a context",
    prompt_item=_choice_item,
    prompt_fields=lambda spec: (*spec.input_names, *spec.label_names, "context"),
    texts=_choice_texts,
    sequences=lambda example: [(example.context, choice) for choice in example.choices],
)

KINDS = (SEQUENCE_CLASSIFICATION, MULTIPLE_CHOICE)
