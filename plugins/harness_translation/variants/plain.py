"""Translators without a model: the text itself, and its words in reverse order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness import UsageError
from harness.data import Translation, TranslatorContext, TranslatorInfo


class PlainTranslator:
    """Applies a function to each segment, for every pair of languages."""

    def __init__(self, name: str, answer: Callable[[str], str] | None) -> None:
        self._name = name
        self._answer = answer

    def info(self) -> TranslatorInfo:
        """Return a name and a version."""
        return TranslatorInfo(
            id=self._name, engine="multilingual-harness", engine_version="1", licence="CC0-1.0"
        )

    def supports(self, source: str, target: str) -> bool:
        """Return True for every pair, unless there is nothing to translate with."""
        return self._answer is not None

    def translate(self, segments: Sequence[str], source: str, target: str) -> list[Translation]:
        """Return one translation per segment."""
        assert self._answer is not None
        return [Translation(text=self._answer(segment)) for segment in segments]

    def close(self) -> None:
        """Do nothing: there is nothing to free."""


def open_identity(ref: str, context: TranslatorContext) -> PlainTranslator:
    """Return the translator that returns the text unchanged."""
    _require_no_reference("identity", ref)
    return PlainTranslator("identity", lambda text: text)


def open_released(ref: str, context: TranslatorContext) -> PlainTranslator:
    """Return the translator that supports no pair: released are whole training sets, which are read as files."""
    _require_no_reference("released", ref)
    return PlainTranslator("released", None)


def open_reverse(ref: str, context: TranslatorContext) -> PlainTranslator:
    """Return the translator that reverses the order of the words; twice, it returns the text with single spaces."""
    _require_no_reference("reverse", ref)
    return PlainTranslator("reverse", lambda text: " ".join(reversed(text.split())))


def _require_no_reference(name: str, ref: str) -> None:
    if ref:
        raise UsageError(f"The translator {name!r} takes no value after its name, got {ref!r}.")
