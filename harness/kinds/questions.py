"""Kinds of questions: the answer is a span of a context (XQuAD), or a number that may be worked out first (MGSM)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from harness.data.records import Answer, NumericQuestion, Prediction, Row, SpanExample
from harness.errors import ContractError, DataError
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, group_of, id_of, meta_of, text_of
from harness.kinds.methods import MethodContext, generate_method, head_method
from harness.languages.number import number_text, plain_number, written_numbers
from harness.models.capabilities import Capability, ExtractsSpans, Generates, Head, SpanQuestion
from harness.prompts.asking import generate_answers
from harness.prompts.parsing import answer_number, read_answer
from harness.prompts.preset import PromptItem
from harness.specs.documents import ALL_LANGUAGES
from harness.specs.schema import Code, TaskSpec

FILES = "en"
"""Published answers are written in the English way in all languages: ``2,125``."""


class SpanExtractionSpec(TaskSpec):
    """The spec of a span extraction task."""

    kind: Literal["span_extraction"]


def _span_example(row: Row, number: int, context: ReadContext) -> SpanExample:
    passage = text_of(row, "context", context)
    return SpanExample(
        id=id_of(row, number),
        cluster=cluster_of(row, context),
        group=group_of(row),
        meta=meta_of(row, "tags"),
        question=text_of(row, "question", context),
        context=passage,
        answers=_gold_answers(row, passage, trained=context.split == "train"),
    )


def _gold_answers(row: Row, passage: str, *, trained: bool) -> tuple[Answer, ...]:
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


def _gold_texts(example: SpanExample) -> list[str] | None:
    return [answer.text for answer in example.answers] or None


def _extract_spans(
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


def _span_item(example: SpanExample) -> PromptItem:
    gold = example.answers[0].text if example.answers else None
    return PromptItem(fields={"context": example.context, "question": example.question}, gold=gold)


def _write_answer(
    adapter: Generates, examples: Sequence[SpanExample], context: MethodContext
) -> list[Prediction]:
    assert context.prompter is not None
    prompter = context.prompter
    return generate_answers(adapter, examples, prompter, prompter.options, _read_span, whole=False)


def _read_span(example: SpanExample, text: str) -> tuple[dict[str, Any], bool]:
    """Return the first line of a text, with its place in the context where it occurs there exactly."""
    answer = read_answer(text)
    if answer is None:
        return {"text": "", "start": -1, "end": -1, "score": 0.0}, False
    start = example.context.find(answer)
    end = -1 if start < 0 else start + len(answer)
    return {"text": answer, "start": start, "end": end, "score": 0.0}, True


class NumericAnswerSpec(TaskSpec):
    """The spec of a task with numeric answers."""

    kind: Literal["numeric_answer"]
    answer_phrases: dict[Code, Annotated[tuple[str, ...], Field(min_length=1)]] = Field(default={})
    """By language: what a written solution says before its answer, where no words of the language announce it."""
    headings: dict[Code, tuple[str, str]] = Field(default={})
    """By language: what the file of exemplars has before a question and before its solution, which is dropped;
    `mul` for languages without their own."""

    def row_words(self, language: str) -> dict[str, str]:
        """Return the headings of a language."""
        question, solution = self.headings.get(language, self.headings.get(ALL_LANGUAGES, ("", "")))
        return {"question": question, "solution": solution}


def _numeric_example(row: Row, number: int, context: ReadContext) -> NumericQuestion:
    solution = row.fields.get("solution")
    answer = row.fields.get("answer")
    if answer is None and solution is not None:
        solution_number = answer_number(str(solution), context.language)
        answer = (
            None
            if solution_number is None or solution_number.value is None
            else number_text(solution_number.value)
        )
    return NumericQuestion(
        id=id_of(row, number),
        cluster=cluster_of(row, context),
        group=group_of(row),
        meta=meta_of(row),
        question=_without(text_of(row, "question", context), context.words.get("question", "")),
        solution=_without(str(solution or ""), context.words.get("solution", "")),
        value=None if answer is None else _value(str(answer), row),
    )


def _without(text: str, heading: str) -> str:
    return text.strip().removeprefix(heading).strip()


def _value(answer: str, row: Row) -> str:
    """Return a gold answer in plain digits; raises `DataError` for what is not one number."""
    numbers = written_numbers(plain_number(answer.strip().strip("$"), FILES), FILES)
    if len(numbers) != 1 or numbers[0].value is None:
        raise DataError(f"{row.where}: expected a number as the answer, found {answer!r}.")
    return number_text(numbers[0].value)


def _value_of(example: NumericQuestion) -> str | None:
    return example.value


def _numeric_item(example: NumericQuestion) -> PromptItem:
    # The shortest solution is the number itself.
    fields = {"question": example.question, "solution": example.solution or example.value or ""}
    return PromptItem(fields=fields, gold=example.value)


def _write_number(
    adapter: Generates, examples: Sequence[NumericQuestion], context: MethodContext
) -> list[Prediction]:
    assert context.prompter is not None and isinstance(context.spec, NumericAnswerSpec)
    language = context.prompter.prompt.literals_language
    phrases = context.spec.answer_phrases.get(language, ())
    read = partial(_read_number, language=language, phrases=phrases, item_language=context.language.code)
    return generate_answers(adapter, examples, context.prompter, context.prompter.options, read)


def _read_number(
    example: NumericQuestion, text: str, *, language: str, phrases: Sequence[str], item_language: str = ""
) -> tuple[dict[str, Any], bool]:
    """Return the number that a text gives, as written and in plain digits; unread where there is none, or two."""
    number = answer_number(text, language, phrases, languages=(item_language,))
    if number is None:
        return {"text": "", "value": None}, False
    value = None if number.value is None else number_text(number.value)
    return {"text": number.text, "value": value}, value is not None


METHODS = (
    head_method("span_extraction", Capability.EXTRACTS_SPANS, _extract_spans),
    generate_method("span_extraction", _write_answer),
    generate_method("numeric_answer", _write_number),
)

SPAN_EXTRACTION = TaskKind(
    name="span_extraction",
    spec_model=SpanExtractionSpec,
    head=Head.SPAN_EXTRACTION,
    methods=("head", "generate"),
    example=_span_example,
    reference=_gold_texts,
    summary="the answer to a question is a span of its context",
    prompt_item=_span_item,
    prompt_fields=lambda spec: ("context", "question"),
    texts=lambda example, spec: (
        (example.question, example.context) if example.context else (example.question,)
    ),
)

NUMERIC_ANSWER = TaskKind(
    name="numeric_answer",
    spec_model=NumericAnswerSpec,
    head=None,
    methods=("generate",),
    example=_numeric_example,
    reference=_value_of,
    summary="the answer to a question is a number",
    prompt_item=_numeric_item,
    prompt_fields=lambda spec: ("question", "solution"),
    texts=lambda example, spec: (example.question,),
)

KINDS = (SPAN_EXTRACTION, NUMERIC_ANSWER)
