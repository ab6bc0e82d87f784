"""The declaration of a transliterator: a pure function over words, with its name, version and licence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Transliterator:
    """A named way to write words of another script in Latin letters.

    `transliterate` gets words of one language, with the language's code, and returns as many words in the same order.
    A word's answer depends on nothing but the word and the language. What it has no rule for comes back as it was:
    ASCII, digits and punctuation always do, except that a danda becomes a full stop; letters of a script that it does
    not know stay, so that a caller can count them. It never answers a word that is not empty with an empty one.
    """

    name: str
    version: str
    """Written into what is made with it, next to the name."""
    licence: str
    """SPDX identifier of the engine's licence; who stores its output has to know it."""
    languages: frozenset[str] | None
    """Codes of the languages it knows; None for any."""
    transliterate: Callable[[Sequence[str], str], list[str]]
    summary: str
    ready: Callable[[], None] | None = None
    """Called before it is used; raises `HarnessError` where it cannot be used here, and says how it can be."""
