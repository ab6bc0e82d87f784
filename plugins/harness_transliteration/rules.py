"""The engine ``rules``: Devanagari and Tamil in Latin letters by rules of our own, word type by word type."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from harness_transliteration import devanagari, tamil

__all__ = ["LANGUAGES", "VERSION", "romanize_word", "transliterate"]

VERSION = "1"
"""Raised whenever a word would be spelt otherwise than before."""

LANGUAGES = devanagari.LANGUAGES | {"ta"}
_NUMERALS: dict[int, int | str] = {**devanagari.NUMERALS, **tamil.NUMERALS}
_KEPT_TYPES = 1 << 17


def transliterate(words: Sequence[str], language: str) -> list[str]:
    """Return the words in Latin letters; a type is worked out once and kept.

    Both scripts are read whatever the language is; the language decides on schwas and on words of its own.
    """
    return [word if word.isascii() else romanize_word(word, language) for word in words]


@lru_cache(maxsize=_KEPT_TYPES)
def romanize_word(word: str, language: str) -> str:
    """Return one word in Latin letters; what is neither Devanagari nor Tamil stays.

    A word that is nothing but silent letters (an avagraha) becomes an apostrophe; one of stray signs stays.
    """
    style = devanagari.style_of(language)
    latin = devanagari.LETTERS.sub(lambda run: devanagari.romanize(run.group(), style), word)
    latin = tamil.LETTERS.sub(lambda run: tamil.romanize(run.group()), latin).translate(_NUMERALS)
    if latin or not word:
        return latin
    return "'" if any(letter.isalpha() for letter in word) else word
