"""Text pair similarity: two texts get a grade on a scale, and systems are compared by the order of their grades.

A bare model embeds both texts, and the cosine is the grade. A fitted model classifies the pair into `GRADES` grades at
equal distances; its grade is the expected one, as in Tai et al. (2015), section 4.2. A model that writes gives a
number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field

from harness import DataError
from harness.data import CSV, ClassificationExample, Prediction, Reader, Row
from harness.kinds import (
    Method,
    MethodContext,
    ReadContext,
    TaskKind,
    generate_method,
    head_method,
)
from harness.models import Capability, Classifies, Embeds, Generates, Head
from harness.prompts import PromptItem, generate_answers
from harness.specs import TaskSpec
from harness_semeval.classification import item_fields, label_probabilities, text_vectors

NAME: Final = "text_pair_similarity"
GRADES: Final = 5
_NUMBER: Final = re.compile(r"-?\d+(?:[.,]\d+)?")


def _read_semrel(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row per pair; the sentences are on two lines, in Hindi and Punjabi each in quotation marks."""
    for path in paths:
        for record in CSV.read([path], {}):
            fields = {name.strip().casefold(): value for name, value in record.fields.items()}
            # The Afrikaans test file has a tab where all others have a line break.
            parts = re.split(r"[\n\t]", str(fields.get("text", "")).strip(), maxsplit=1)
            if len(parts) != 2:
                raise DataError(
                    f"{record.where}: expected two sentences on two lines in the column 'Text', found one."
                )
            pair = [sentence.strip().strip('"').strip() for sentence in parts]
            row = {"id": fields.get("pairid"), "sentence1": pair[0], "sentence2": pair[1]}
            if fields.get("score") not in (None, ""):
                row["score"] = fields["score"]
            yield Row(fields=row, path=record.path, line=record.line)


SEMREL: Final = Reader(
    name="semrel",
    read=_read_semrel,
    summary="SemRel2024: PairID, Text with two sentences on two lines, and Score",
)


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
        **item_fields(row, number, context),
        label=nearest,
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
    vectors = text_vectors(adapter, texts)
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
    return generate_answers(adapter, examples, context.prompter, context.prompter.options, _read_grade)


def _read_grade(example: GradedPair, text: str) -> tuple[dict[str, Any], bool]:
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
