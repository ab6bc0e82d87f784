"""Translation: a text is translated out of, or into, one language that all cells share (NTREX)."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from harness.kinds.methods import generate_method
from harness.kinds.source_text import language_name, predict, writing_kind
from harness.specs.schema import Code, TaskSpec

__all__ = ["KIND", "METHODS", "TranslationSpec"]


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


METHODS = (generate_method("translation", predict),)

KIND = writing_kind("translation", TranslationSpec, "a text is translated")
