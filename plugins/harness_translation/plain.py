"""Translators without a model: the text itself, and its words in reverse order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.data.translation.translators import Translation, TranslatorContext, TranslatorInfo
from harness.errors import UsageError

__all__ = ["PlainTranslator", "open_identity", "open_reverse"]


class PlainTranslator:
    """Answers each segment with a function of it, whatever the languages."""

    def __init__(self, name: str, answer: Callable[[str], str]) -> None:
        self._name = name
        self._answer = answer

    def info(self) -> TranslatorInfo:
        """Return a name and a version."""
        return TranslatorInfo(
            id=self._name, engine="multilingual-harness", engine_version="1", licence="CC0-1.0"
        )

    def supports(self, source: str, target: str) -> bool:
        """Every pair."""
        return True

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        """Return one answer a segment."""
        return [Translation(text=self._answer(segment)) for segment in segments]

    def close(self) -> None:
        """Nothing is held."""


def open_identity(ref: str, context: TranslatorContext) -> PlainTranslator:
    """Return the translator that answers with the text itself."""
    _refuse_reference("identity", ref)
    return PlainTranslator("identity", lambda text: text)


def open_reverse(ref: str, context: TranslatorContext) -> PlainTranslator:
    """Return the translator that turns the order of the words around; twice, it is the text with single spaces."""
    _refuse_reference("reverse", ref)
    return PlainTranslator("reverse", lambda text: " ".join(reversed(text.split())))


def _refuse_reference(name: str, ref: str) -> None:
    if ref:
        raise UsageError(f"The translator {name!r} takes nothing behind its name; found {ref!r}.")
