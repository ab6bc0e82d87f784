"""Judged answers: a source and an answer, or two, get one of the verdicts of a rubric."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from harness.data import ClassificationExample, Row
from harness.kinds import ReadContext, TaskKind, choice_methods, cluster_of, id_of, label_of, meta_of, text_of
from harness.prompts import PromptItem
from harness.specs import TaskSpec


class JudgementSpec(TaskSpec):
    """The spec of a task that ``harness judge`` writes."""

    kind: Literal["judgement"]
    inputs: Annotated[tuple[str, ...], Field(min_length=1)]
    labels: Annotated[tuple[str, ...], Field(min_length=2)]
    """The verdicts; those of a scale from the worst to the best."""
    rubric: str = ""
    """``NAME@DIGEST``; tasks of older versions have none."""


def _example(row: Row, number: int, context: ReadContext) -> ClassificationExample:
    return ClassificationExample(
        id=id_of(row, number),
        cluster=cluster_of(row, context),
        meta=meta_of(row),
        inputs={name: text_of(row, name, context) for name in context.inputs},
        label=label_of(row, context),
        labels=context.labels,
    )


def _reference(example: ClassificationExample) -> dict[str, Any]:
    """Return the right verdict, None where it is not known, and of pairs which it is and which answer came first."""
    return {"label": example.label, "pair": example.meta.get("pair"), "order": example.meta.get("order")}


def _prompt_item(example: ClassificationExample) -> PromptItem:
    return PromptItem(fields=example.inputs, choices=example.labels, gold=example.label)


METHODS = choice_methods("judgement")

KIND = TaskKind(
    name="judgement",
    spec_model=JudgementSpec,
    head=None,
    methods=("generate", "rank"),
    example=_example,
    reference=_reference,
    summary="a model rates answers of a finished run",
    prompt_item=_prompt_item,
    prompt_fields=lambda spec: spec.input_names,
    texts=lambda example, spec: tuple(example.inputs.values()),
)
