"""Numeric answers: a question whose answer is a number, worked out in words or given at once (MGSM)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from harness.data.records import NumericQuestion, Prediction, Row
from harness.errors import DataError
from harness.kinds.kind import ReadContext, TaskKind, cluster_of, group_of, id_of, meta_of, text_of
from harness.kinds.methods import MethodContext, generate_method
from harness.languages.number import number_text, plain_number, written_numbers
from harness.models.capabilities import Generates
from harness.prompts.asking import generate_answers
from harness.prompts.number_answer import answer_number
from harness.prompts.preset import PromptItem
from harness.specs.prompt import ALL_LANGUAGES
from harness.specs.schema import Code, TaskSpec

FILES = "en"
"""Published answers are written in the English way in all languages: ``2,125``."""


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


def _example(row: Row, number: int, context: ReadContext) -> NumericQuestion:
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


def _reference(example: NumericQuestion) -> str | None:
    return example.value


def _prompt_item(example: NumericQuestion) -> PromptItem:
    # The shortest solution is the number itself.
    fields = {"question": example.question, "solution": example.solution or example.value or ""}
    return PromptItem(fields=fields, gold=example.value)


def _predict(
    adapter: Generates, examples: Sequence[NumericQuestion], context: MethodContext
) -> list[Prediction]:
    assert context.prompter is not None and isinstance(context.spec, NumericAnswerSpec)
    language = context.prompter.prompt.literals_language
    phrases = context.spec.answer_phrases.get(language, ())
    read = partial(_read, language=language, phrases=phrases, item_language=context.language.code)
    return generate_answers(adapter, examples, context.prompter, context.prompter.options, read)


def _read(
    example: NumericQuestion, text: str, *, language: str, phrases: Sequence[str], item_language: str = ""
) -> tuple[dict[str, Any], bool]:
    """Return the number that a text gives, as written and in plain digits; unread where there is none, or two."""
    number = answer_number(text, language, phrases, languages=(item_language,))
    if number is None:
        return {"text": "", "value": None}, False
    value = None if number.value is None else number_text(number.value)
    return {"text": number.text, "value": value}, value is not None


METHODS = (generate_method("numeric_answer", _predict),)

KIND = TaskKind(
    name="numeric_answer",
    spec_model=NumericAnswerSpec,
    head=None,
    methods=("generate",),
    example=_example,
    reference=_reference,
    summary="the answer to a question is a number",
    prompt_item=_prompt_item,
    prompt_fields=lambda spec: ("question", "solution"),
    texts=lambda example, spec: (example.question,),
)
