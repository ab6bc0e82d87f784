"""Text pair similarity: two texts get a grade on a scale, and systems are compared by the order of their grades.

A bare model embeds both texts, and the cosine is the grade. A fitted model classifies the pair into `GRADES` grades at
equal distances; its grade is the expected one, as in Tai et al. (2015), section 4.2. A model that writes gives a
number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field

from harness import ContractError, DataError
from harness.data import ClassificationExample, Prediction, Row
from harness.kinds import (
    Method,
    MethodContext,
    ReadContext,
    TaskKind,
    cluster_of,
    generate_method,
    group_of,
    head_method,
    id_of,
    meta_of,
    text_of,
)
from harness.models import Capability, Classifies, Embeds, Generates, Head
from harness.prompts import PromptItem, generate_answers
from harness.specs import TaskSpec
from harness_semeval.scores import label_probabilities

NAME: Final = "text_pair_similarity"
GRADES: Final = 5
_NUMBER: Final = re.compile(r"-?\d+(?:[.,]\d+)?")


class TextPairSimilaritySpec(TaskSpec):
    """The spec of a task with graded pairs."""

    kind: Literal["text_pair_similarity"]
    inputs: Annotated[tuple[str, ...], Field(min_length=2, max_length=2)]
    scale: tuple[float, float] = (0.0, 1.0)
    """The lowest and the highest grade."""

    @property
    def label_names(self) -> tuple[str, ...]:
        """The grades that a fitted head chooses from, lowest first."""
        return tuple([f"{grade:g}" for grade in np.linspace(*self.scale, GRADES)])


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedPair(ClassificationExample):
    """Two texts; their `label` is the nearest grade that a head has."""

    grade: float | None
    """None where the published file has no grades."""


def _example(row: Row, number: int, context: ReadContext) -> GradedPair:
    grade = _grade(row, context)
    nearest = None
    if grade is not None:
        nearest = min(context.labels, key=lambda label: abs(float(label) - grade))
    return GradedPair(
        id=id_of(row, number),
        cluster=cluster_of(row, context),
        group=group_of(row),
        meta=meta_of(row),
        inputs={name: text_of(row, name, context) for name in context.inputs},
        label=nearest,
        labels=context.labels,
        grade=grade,
    )


def _grade(row: Row, context: ReadContext) -> float | None:
    value = row.fields.get("score")
    if value is None:
        return None
    try:
        grade = float(value)
    except (TypeError, ValueError):
        grade = float("nan")
    low, high = float(context.labels[0]), float(context.labels[-1])
    if not low <= grade <= high:
        raise DataError(
            f"{row.where}: expected a grade from {low:g} to {high:g} in 'score', found {value!r}."
        )
    return grade


def _predict_by_embedding(
    adapter: Embeds, examples: Sequence[GradedPair], context: MethodContext
) -> list[Prediction]:
    texts = [text for example in examples for text in example.inputs.values()]
    vectors = adapter.embed(texts, side="query")
    if len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise ContractError(
            f"embed() returned {len(vectors)} vectors for {len(texts)} texts, or NaN in them."
        )
    cosines = (vectors[0::2] * vectors[1::2]).sum(axis=1)
    return _graded(examples, cosines.tolist())


def _predict_with_head(
    adapter: Classifies, examples: Sequence[GradedPair], context: MethodContext
) -> list[Prediction]:
    labels = context.spec.label_names
    shares = label_probabilities(adapter, [tuple(example.inputs.values()) for example in examples], labels)
    return _graded(examples, (shares @ np.array([float(label) for label in labels])).tolist())


def _graded(examples: Sequence[GradedPair], grades: Sequence[float]) -> list[Prediction]:
    return [
        Prediction(id=example.id, output={"grade": round(grade, 6)})
        for example, grade in zip(examples, grades, strict=True)
    ]


def _predict_by_generation(
    adapter: Generates, examples: Sequence[GradedPair], context: MethodContext
) -> list[Prediction]:
    assert context.prompter is not None
    return generate_answers(adapter, examples, context.prompter, context.prompter.options, _read)


def _read(example: GradedPair, text: str) -> tuple[dict[str, Any], bool]:
    """Return the first number of an answer that is on the scale; without one, the lowest grade, unread."""
    low, high = float(example.labels[0]), float(example.labels[-1])
    numbers = [float(number.replace(",", ".")) for number in _NUMBER.findall(text)]
    grade = next((number for number in numbers if low <= number <= high), None)
    return {"grade": low if grade is None else grade, "text": text.strip()}, grade is not None


def _prompt_item(example: GradedPair) -> PromptItem:
    fields = {**example.inputs, "low": example.labels[0], "high": example.labels[-1]}
    return PromptItem(fields=fields, gold=None if example.grade is None else f"{example.grade:g}")


METHODS: Final = (
    head_method(NAME, Capability.CLASSIFIES, _predict_with_head),
    generate_method(NAME, _predict_by_generation, repeatable=False),
    Method(
        name="embed",
        kind=NAME,
        requires=Capability.EMBEDS,
        protocols=frozenset({"frozen"}),
        predict=_predict_by_embedding,
    ),
)

KIND: Final = TaskKind(
    name=NAME,
    spec_model=TextPairSimilaritySpec,
    head=Head.CLASSIFICATION,
    methods=("head", "generate", "embed"),
    example=_example,
    reference=lambda example: example.grade,
    summary="a pair of texts gets a grade on a scale",
    prompt_item=_prompt_item,
    prompt_fields=lambda spec: (*spec.input_names, "low", "high"),
    texts=lambda example, spec: tuple(example.inputs.values()),
    sequences=lambda example: [tuple(example.inputs.values())],
)
