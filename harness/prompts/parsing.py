"""What a model wrote, read by one documented rule a parser; None where the text cannot be read.

A text that cannot be read counts as wrong and as unparsed; nothing is guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

__all__ = ["PARSERS", "read_answer", "read_choice", "read_letter"]

_LETTER = re.compile(r"\W*([A-Z])(?:\W|$)")


def _plain(text: str) -> str:
    """Return the text in NFC, case-folded, with runs of spaces joined and marks at both ends removed."""
    folded = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    start, end = 0, len(folded)
    while start < end and unicodedata.category(folded[start])[0] in "PSZ":
        start += 1
    while end > start and unicodedata.category(folded[end - 1])[0] in "PSZ":
        end -= 1
    return folded[start:end]


def read_choice(text: str, words: Sequence[str]) -> int | None:
    """Return which of the words a text is, or begins with; None where it is none, or more than one fits equally.

    Case, marks at both ends and spaces do not matter. The longest word that the text begins with wins, and what
    follows it must not continue the word: ``no`` is not read in ``nothing``.
    """
    given = _plain(text)
    plain = [_plain(word) for word in words]
    fitting = [index for index, word in enumerate(plain) if word and _begins(given, word)]
    if not fitting:
        return None
    longest = max(len(plain[index]) for index in fitting)
    best = [index for index in fitting if len(plain[index]) == longest]
    return best[0] if len(best) == 1 else None


def _begins(text: str, word: str) -> bool:
    if not text.startswith(word):
        return False
    following = text[len(word) : len(word) + 1]
    if not following:
        return True
    # In scripts without spaces a word may be followed by a letter; there the whole text must be the word.
    return unicodedata.category(following)[0] not in "LMN"


def read_letter(text: str, words: Sequence[str]) -> int | None:
    """Return which choice a text names by its letter: the first character that is a capital letter alone."""
    match = _LETTER.match(unicodedata.normalize("NFC", text))
    if match is None:
        return None
    index = ord(match.group(1)) - ord("A")
    return index if index < len(words) else None


def read_answer(text: str) -> str | None:
    """Return the first line of a text without spaces around it, or None where nothing is left."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else None


PARSERS: Final = ("choice", "letter", "answer", "tagged", "entities")
"""The names that a prompt may give; `harness.prompts.tagged` reads ``tagged`` and ``entities``."""
