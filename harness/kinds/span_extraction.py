"""Span extraction: the answer to a question is a span of its context (XQuAD)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from harness.data.records import Answer, Prediction, Row, SpanExample
from harness.errors import ContractError, DataError
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, group_of, id_of, meta_of, text_of
from harness.kinds.methods import MethodContext, generate_method, head_method
from harness.models.capabilities import Capability, ExtractsSpans, Generates, Head, SpanQuestion
from harness.prompts.asking import generate_answers
from harness.prompts.parsing import read_answer
from harness.prompts.preset import PromptItem
from harness.specs.schema import TaskSpec


class SpanExtractionSpec(TaskSpec):
    """The spec of a span extraction task."""

    kind: Literal["span_extraction"]


def _example(row: Row, number: int, context: ReadContext) -> SpanExample:
    passage = text_of(row, "context", context)
    return SpanExample(
        id=id_of(row, number),
        cluster=cluster_of(row, context),
        group=group_of(row),
        meta=meta_of(row, "tags"),
        question=text_of(row, "question", context),
        context=passage,
        answers=_answers(row, passage, trained=context.split == "train"),
    )


def _answers(row: Row, passage: str, *, trained: bool) -> tuple[Answer, ...]:
    """Return the gold answers; one at character -1 is not in its context, and cannot be trained on."""
    answers: list[Answer] = []
    for item in row.fields.get("answers") or ():
        text, start = str(item["text"]), int(item["start"])
        absent = start == -1 and not trained
        if not text or not (absent or passage[start : start + len(text)] == text):
            raise DataError(
                f"{row.where}: the answer {text!r} of question {row.fields.get('id')!r} is not in its context at "
                f"character {start}; found {passage[start : start + len(text)]!r}."
            )
        answers.append(Answer(text=text, start=start))
    return tuple(answers)


def _reference(example: SpanExample) -> list[str] | None:
    return [answer.text for answer in example.answers] or None


def _predict_with_head(
    adapter: ExtractsSpans, examples: Sequence[SpanExample], context: MethodContext
) -> list[Prediction]:
    questions = [
        SpanQuestion(id=example.id, question=example.question, context=example.context)
        for example in examples
    ]
    spans = adapter.extract_spans(questions)
    if len(spans) != len(examples):
        raise ContractError(f"extract_spans() returned {len(spans)} answers to {len(examples)} questions.")
    predictions = []
    for example, span in zip(examples, spans, strict=True):
        if span.text and example.context[span.start : span.end] != span.text:
            raise ContractError(
                f"extract_spans() answered {span.text!r} to question {example.id!r}, which is not its context's "
                f"text at characters {span.start} to {span.end}."
            )
        output: dict[str, Any] = {
            "text": span.text,
            "start": span.start,
            "end": span.end,
            "score": round(span.score, 6),
        }
        predictions.append(Prediction(id=example.id, output=output, truncated=span.truncated))
    return predictions


def _prompt_item(example: SpanExample) -> PromptItem:
    gold = example.answers[0].text if example.answers else None
    return PromptItem(fields={"context": example.context, "question": example.question}, gold=gold)


def _predict_by_generation(
    adapter: Generates, examples: Sequence[SpanExample], context: MethodContext
) -> list[Prediction]:
    assert context.prompter is not None
    prompter = context.prompter
    return generate_answers(adapter, examples, prompter, prompter.options, _read, whole=False)


def _read(example: SpanExample, text: str) -> tuple[dict[str, Any], bool]:
    """Return the first line of a text, with its place in the context where it occurs there exactly."""
    answer = read_answer(text)
    if answer is None:
        return {"text": "", "start": -1, "end": -1, "score": 0.0}, False
    start = example.context.find(answer)
    end = -1 if start < 0 else start + len(answer)
    return {"text": answer, "start": start, "end": end, "score": 0.0}, True


METHODS = (
    head_method("span_extraction", Capability.EXTRACTS_SPANS, _predict_with_head),
    generate_method("span_extraction", _predict_by_generation),
)

KIND = TaskKind(
    name="span_extraction",
    spec_model=SpanExtractionSpec,
    head=Head.SPAN_EXTRACTION,
    methods=("head", "generate"),
    example=_example,
    reference=_reference,
    summary="the answer to a question is a span of its context",
    prompt_item=_prompt_item,
    prompt_fields=lambda spec: ("context", "question"),
    texts=lambda example, spec: (
        (example.question, example.context) if example.context else (example.question,)
    ),
)
