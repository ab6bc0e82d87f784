"""Sequence classification: a text or a pair of texts gets one of the task's labels (XNLI, PAWS-X)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from harness.data.records import ClassificationExample, Prediction, Row, is_tied
from harness.errors import ContractError
from harness.kinds.choosing import choice_methods
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, group_of, id_of, label_of, meta_of, text_of
from harness.kinds.methods import MethodContext, head_method
from harness.models.capabilities import Capability, Classifies, Head, TextInput
from harness.prompts.preset import PromptItem
from harness.specs.schema import TaskSpec


class SequenceClassificationSpec(TaskSpec):
    """The spec of a sequence classification task."""

    kind: Literal["sequence_classification"]
    inputs: Annotated[tuple[str, ...], Field(min_length=1, max_length=2)]
    labels: Annotated[tuple[str, ...], Field(min_length=2)]
    mask_word: Annotated[str, Field(pattern=r"^\S+$")] | None = None
    """The word of the input that marks a masked one: methods that read words put the model's own mask there."""


def _example(row: Row, number: int, context: ReadContext) -> ClassificationExample:
    return ClassificationExample(
        id=id_of(row, number),
        cluster=cluster_of(row, context),
        group=group_of(row),
        meta=meta_of(row),
        inputs={name: text_of(row, name, context) for name in context.inputs},
        label=label_of(row, context),
        labels=context.labels,
    )


def _reference(example: ClassificationExample) -> str | None:
    return example.label


def text_input(example: ClassificationExample) -> TextInput:
    """Return the input of a classifier: the first field, and the second one as the pair's other side."""
    texts = list(example.inputs.values())
    return TextInput(text=texts[0], text_pair=texts[1] if len(texts) > 1 else None)


def _predict_with_head(
    adapter: Classifies, examples: Sequence[ClassificationExample], context: MethodContext
) -> list[Prediction]:
    labels = context.spec.label_names
    scores = np.asarray(adapter.classify([text_input(example) for example in examples], labels))
    if scores.shape != (len(examples), len(labels)):
        raise ContractError(
            f"classify() returned scores of shape {scores.shape}; expected {(len(examples), len(labels))}."
        )
    if not np.isfinite(scores).all():
        raise ContractError(f"classify() returned scores that are not finite for task {context.spec.task!r}.")
    best = scores.argmax(axis=1)
    return [
        Prediction(id=example.id, output=_output(labels[index], row), tied=is_tied(row))
        for example, index, row in zip(examples, best.tolist(), scores.tolist(), strict=True)
    ]


def _output(label: str, scores: Sequence[float]) -> dict[str, Any]:
    return {"label": label, "scores": [round(score, 6) for score in scores]}


def _prompt_item(example: ClassificationExample) -> PromptItem:
    return PromptItem(fields=example.inputs, choices=example.labels, gold=example.label)


METHODS = (
    head_method("sequence_classification", Capability.CLASSIFIES, _predict_with_head),
    *choice_methods("sequence_classification"),
)

KIND = TaskKind(
    name="sequence_classification",
    spec_model=SequenceClassificationSpec,
    head=Head.CLASSIFICATION,
    methods=("head", "rank", "generate", "probe"),
    example=_example,
    reference=_reference,
    summary="a text or a pair of texts gets one label",
    prompt_item=_prompt_item,
    prompt_fields=lambda spec: spec.input_names,
    texts=lambda example, spec: tuple(example.inputs.values()),
    sequences=lambda example: [tuple(example.inputs.values())],
)
