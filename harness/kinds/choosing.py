"""Prompted methods of kinds whose answer is one of several names: labels, or the choices of multiple choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.data.records import Prediction
from harness.kinds.methods import Method, MethodContext, generate_method
from harness.models.capabilities import Capability, Generates, ScoresContinuations
from harness.models.requests import GenerateOptions
from harness.prompts.asking import generate_answers, rank_choices
from harness.prompts.letter_answer import read_letter
from harness.prompts.parsing import read_choice
from harness.prompts.preset import LETTERS


def choice_methods(kind: str) -> tuple[Method, ...]:
    """Return the methods `rank` and `generate` of a kind."""
    return (
        Method(
            name="rank",
            kind=kind,
            requires=Capability.SCORES_CONTINUATIONS,
            protocols=frozenset({"prompted"}),
            predict=_predict_by_rank,
            prompted=True,
        ),
        generate_method(kind, _predict_by_generation, constraint=lambda _: "choices"),
    )


def _predict_by_rank(
    adapter: ScoresContinuations, examples: Sequence[Any], context: MethodContext
) -> list[Prediction]:
    assert context.prompter is not None
    return rank_choices(adapter, examples, context.prompter)


def _predict_by_generation(
    adapter: Generates, examples: Sequence[Any], context: MethodContext
) -> list[Prediction]:
    assert context.prompter is not None
    prompter = context.prompter
    spec = prompter.prompt.spec
    by_letter = (spec.parser or ("letter" if spec.formulation == "letters" else "choice")) == "letter"

    languages = (context.language.code, prompter.prompt.literals_language)

    def read(example: Any, text: str) -> tuple[dict[str, Any], bool]:
        item = prompter.item(example)
        words = prompter.prompt.words(item)
        index = read_letter(text, words, languages) if by_letter else read_choice(text, words, languages)
        return {"label": None if index is None else item.choices[index]}, index is not None

    def options(example: Any) -> GenerateOptions:
        words = prompter.prompt.words(prompter.item(example))
        return prompter.options(example, choices=tuple(LETTERS[: len(words)]) if by_letter else words)

    return generate_answers(adapter, examples, prompter, options, read, whole=False)
