"""Multilabel classification: a text or a pair of texts gets any number of the task's labels (BRIGHTER).

Fitted models choose among all sets of labels, the label powerset of Tsoumakas and Katakis (2007), "Multi-Label
Classification", section 2.1: so every head for classification serves this kind. A label is predicted where the sets
with it have more than half of the probability. A head with one output per label and binary cross-entropy, as the
baselines of Muhammad et al. (2025) have it, is another model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field

from harness import DataError
from harness.data import ClassificationExample, Prediction, Row
from harness.kinds import (
    MethodContext,
    ReadContext,
    TaskKind,
    generate_method,
    head_method,
)
from harness.models import Capability, Classifies, Generates, Head
from harness.prompts import PromptItem, generate_answers
from harness.specs import TaskSpec
from harness_semeval.classification import item_fields, label_probabilities

NAME: Final = "multilabel_classification"
NONE: Final = "none"
"""The set without a label."""
JOINT: Final = "+"


class MultilabelClassificationSpec(TaskSpec):
    """The spec of a task with any number of labels per item."""

    kind: Literal["multilabel_classification"]
    inputs: Annotated[tuple[str, ...], Field(min_length=1, max_length=2)]
    labels: Annotated[
        tuple[Annotated[str, Field(pattern=r"^[^+\s]+$")], ...], Field(min_length=2, max_length=8)
    ]
    """Also the columns that hold 1 or 0; a column that a file does not have is not annotated in its language."""

    @property
    def label_names(self) -> tuple[str, ...]:
        """All sets of labels, the outputs of a fitted head: ``none``, ``anger``, ``anger+fear`` and so on."""
        return label_sets(self.labels)


def label_sets(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the names of all sets of labels: the empty one first, every label in the order of the spec."""
    choices = product((False, True), repeat=len(labels))
    return tuple(
        [_set_name([name for name, is_in in zip(labels, row, strict=True) if is_in]) for row in choices]
    )


def members(name: str) -> list[str]:
    """Return the labels of a set by its name."""
    return [] if name == NONE else name.split(JOINT)


def base_labels(sets: Sequence[str]) -> list[str]:
    """Return the labels of which all sets are made, in the order of the spec."""
    return members(max(sets, key=lambda name: len(members(name))))


def _set_name(labels: Sequence[str]) -> str:
    return JOINT.join(labels) or NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class MultilabelExample(ClassificationExample):
    """A text with a set of labels; its `label` is the name of the set."""

    annotated: tuple[str, ...]
    """The labels that the file has a value for."""


def _example(row: Row, number: int, context: ReadContext) -> MultilabelExample:
    names = base_labels(context.labels)
    marks = {name: _mark(row, name) for name in names}
    annotated = tuple([name for name, mark in marks.items() if mark is not None])
    return MultilabelExample(
        **item_fields(row, number, context),
        label=_set_name([name for name in names if marks[name]]) if annotated else None,
        annotated=annotated,
    )


def _mark(row: Row, name: str) -> bool | None:
    """Return whether an item has a label, None where its column is missing or empty; raises `DataError`."""
    value = row.fields.get(name)
    if value is None or value == "":
        return None
    text = str(value).strip().casefold()
    if text not in {"0", "1", "0.0", "1.0", "false", "true"}:
        raise DataError(f"{row.where}: expected 0 or 1 in the column {name!r}, found {value!r}.")
    return text in {"1", "1.0", "true"}


def _reference(example: MultilabelExample) -> dict[str, list[str]] | None:
    if example.label is None:
        return None
    return {"labels": members(example.label), "annotated": list(example.annotated)}


def _predict_with_head(
    adapter: Classifies, examples: Sequence[MultilabelExample], context: MethodContext
) -> list[Prediction]:
    sets = context.spec.label_names
    names = base_labels(sets)
    contains = np.array([[name in members(labels) for name in names] for labels in sets], dtype=np.float64)
    inputs = [tuple(example.inputs.values()) for example in examples]
    shares = label_probabilities(adapter, inputs, sets) @ contains
    return [
        Prediction(id=example.id, output=label_output(names, row))
        for example, row in zip(examples, shares.tolist(), strict=True)
    ]


def label_output(names: Sequence[str], shares: Sequence[float]) -> dict[str, Any]:
    """Return the output of an item: the labels with more than half of the probability, and all probabilities."""
    return {
        "labels": [name for name, share in zip(names, shares, strict=True) if share > 0.5],
        "scores": [round(share, 6) for share in shares],
    }


def _predict_by_generation(
    adapter: Generates, examples: Sequence[MultilabelExample], context: MethodContext
) -> list[Prediction]:
    assert context.prompter is not None
    return generate_answers(adapter, examples, context.prompter, context.prompter.options, _read)


def _read(example: MultilabelExample, text: str) -> tuple[dict[str, Any], bool]:
    """Return the labels that an answer names; unread where it names none and does not say ``none``."""
    words = set(re.findall(r"\w+", text.casefold()))
    labels = [name for name in base_labels(example.labels) if name.casefold() in words]
    return {"labels": labels, "text": text.strip()}, bool(labels) or NONE in words


def _prompt_item(example: MultilabelExample) -> PromptItem:
    gold = None if example.label is None else ", ".join(members(example.label)) or NONE
    listed = ", ".join(example.annotated or base_labels(example.labels))
    return PromptItem(fields={**example.inputs, "labels": listed}, gold=gold)


METHODS: Final = (
    head_method(NAME, Capability.CLASSIFIES, _predict_with_head),
    generate_method(NAME, _predict_by_generation, repeatable=False),
)

KIND: Final = TaskKind(
    name=NAME,
    spec_model=MultilabelClassificationSpec,
    head=Head.CLASSIFICATION,
    methods=("head", "generate", "embed"),
    example=_example,
    reference=_reference,
    summary="a text or a pair of texts gets any number of labels",
    prompt_item=_prompt_item,
    prompt_fields=lambda spec: (*spec.input_names, "labels"),
    texts=lambda example, spec: tuple(example.inputs.values()),
    sequences=lambda example: [tuple(example.inputs.values())],
)
