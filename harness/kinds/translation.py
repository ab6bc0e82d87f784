"""Translation: a text is translated out of, or into, one language that all cells share (NTREX).

Translation models (NLLB) get the text with their own language codes, by the method `translate`; others get a prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import model_validator

from harness.data.records import Prediction, SourceText
from harness.kinds.methods import Method, MethodContext, generate_method
from harness.kinds.source_text import language_name, predict, writing_kind, written_prediction
from harness.models.capabilities import Capability, Generates
from harness.models.requests import GenerateOptions
from harness.specs.schema import Code, TaskSpec

MOST_TOKENS = 512
"""Longest translation of a translation model, which was trained on sentences."""


class TranslationSpec(TaskSpec):
    """The spec of a translation task; its cells are named by the language that is not the shared one."""

    kind: Literal["translation"]
    source_language: Code | None = None
    """The language of all sources: each language of the task is translated into."""
    target_language: Code | None = None
    """The language of all translations: each language of the task is translated from."""

    @property
    def answer_language(self) -> str | None:
        """The language of all translations, where they share it."""
        return self.target_language

    def row_words(self, language: str) -> dict[str, str]:
        """Return the English names of the two languages."""
        source, target = self.source_language or language, self.target_language or language
        return {"source_name": language_name(self, source), "target_name": language_name(self, target)}

    @model_validator(mode="after")
    def _shares_one_side(self) -> TranslationSpec:
        if (self.source_language is None) == (self.target_language is None):
            raise ValueError(
                "give either 'source_language' or 'target_language': the language on one side of all translations"
            )
        return self


def _translate(
    adapter: Generates, examples: Sequence[SourceText], context: MethodContext
) -> list[Prediction]:
    """Return a translation model's output for each text; raises `CapabilityError` for a language it does not know."""
    assert isinstance(context.spec, TranslationSpec)
    language = (context.cell_language or context.language).code
    pair = (context.spec.source_language or language, context.spec.target_language or language)
    options = GenerateOptions(max_tokens=MOST_TOKENS, languages=pair)
    answers = adapter.generate([example.source for example in examples], [options] * len(examples))
    return [written_prediction(example, answer) for example, answer in zip(examples, answers, strict=True)]


METHODS = (
    Method(
        name="translate",
        kind="translation",
        requires=Capability.TRANSLATES,
        protocols=frozenset({"prompted"}),
        predict=_translate,
    ),
    generate_method("translation", predict),
)

KIND = writing_kind("translation", TranslationSpec, "a text is translated", methods=("translate", "generate"))
