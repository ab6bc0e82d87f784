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
_LEADS = (
    r"(?:so,? )?(?:the |my )?(?:correct |right |best |final )?(?:answer|option|choice)(?: is)?(?: option)?",
    r"(?:die )?(?:richtige )?antwort(?: ist| lautet)?",
    r"(?:la )?(?:respuesta|opci\u00f3n)(?: correcta)?(?: es)?",
    r"(?:la )?(?:bonne )?r\u00e9ponse(?: correcte)?(?: est)?",
    r"(?:a )?resposta(?: correta| certa)?(?: \u00e9)?",
    r"(?:la )?risposta(?: corretta)?(?: \u00e8)?",
    r"het (?:juiste )?antwoord is",
    r"(?:\u043f\u0440\u0430\u0432\u0438\u043b\u044c\u043d\u044b\u0439 )?\u043e\u0442\u0432\u0435\u0442",
    r"(?:do\u011fru )?cevap",
    r"jibu(?: sahihi)?(?: ni)?",
    r"jawaban(?:nya)?(?: yang benar)?(?: adalah)?",
    r"(?:\u0111\u00e1p \u00e1n|c\u00e2u tr\u1ea3 l\u1eddi)(?: \u0111\u00fang)?(?: l\u00e0)?",
    r"(?:\u6b63\u786e)?\u7b54\u6848(?:\u662f|\u4e3a)?",
    r"(?:\u6b63\u89e3|\u7b54\u3048)(?:\u306f)?",
    r"(?:\uc815)?\ub2f5(?:\uc740)?",
    r"\u0627\u0644\u0625\u062c\u0627\u0628\u0629(?: \u0627\u0644\u0635\u062d\u064a\u062d\u0629)?(?: \u0647\u064a)?",
    r"(?:\u0938\u0939\u0940 )?\u0909\u0924\u094d\u0924\u0930(?: \u0939\u0948)?",
)
_LEAD = re.compile(rf"[^\w\n]*(?:{'|'.join(_LEADS)})[^\w\n]*", re.IGNORECASE)
"""What announces an answer, at the beginning of a text: ``The answer is C.``, ``**Answer:** C``, ``Antwort: C``."""


def _announced(text: str) -> str | None:
    """Return what follows words such as 'The answer is' at the beginning; None where there are none."""
    match = _LEAD.match(unicodedata.normalize("NFC", text).lstrip())
    return None if match is None else match.string[match.end() :]


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
    follows it must not continue the word: ``no`` is not read in ``nothing``. A text that is none is read once more
    after words such as 'The answer is'.
    """
    found = _begun(text, words)
    announced = _announced(text) if found is None else None
    return found if announced is None else _begun(announced, words)


def _begun(text: str, words: Sequence[str]) -> int | None:
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
    """Return which choice a text names by its letter: the first word is a capital letter alone.

    Words such as 'The answer is' may precede it.
    """
    announced = _announced(text)
    match = _LETTER.match(unicodedata.normalize("NFC", text) if announced is None else announced)
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
