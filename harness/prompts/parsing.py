"""Answers read from a model's text by one documented rule per parser; None where the text cannot be read.

A text that cannot be read counts as wrong and as unparsed; nothing is guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final

from harness.languages.answer_words import answer_words, pattern
from harness.languages.spelling import fold

_CLAUSE: Final = re.compile(
    r"[.,:;!?\n\u060c\u061b\u06d4\u0964\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f\u2013\u2014]+"
)
_MOST_LINKS: Final = 7
_MARGIN: Final = 100
"""Characters that are looked at beyond twice the longest choice."""
_NOTHING: Final = -1


def read_choice(text: str, words: Sequence[str], languages: Sequence[str] = ()) -> int | None:
    """Return which of the words a text announces, or begins with; None where it is none, or more than one fits equally.

    Case, accents, spellings of one sound (`fold`), marks at both ends and spaces do not matter. The longest word
    wins, and what follows it must not continue the word: ``no`` is not read in ``nothing``. The last announcement
    comes first ("The answer is no", in the words of the languages, or of all), then a word at the beginning. Where
    more words follow it in its clause, a later clause that is one word is meant: "No doubt: yes". A text that begins
    with none is read behind the colon of its last line.

    Args:
        text: What the model wrote.
        words: What it may answer.
        languages: Of the item and of the prompt; none for all languages of the table.
    """
    announced = next(_announced(fold(unicodedata.normalize("NFKC", text)), words, tuple(languages)), _NOTHING)
    if announced != _NOTHING:
        return announced
    first = _begun(text, words)
    if first is None:
        _, colon, last = (text.strip().splitlines() or [""])[-1].replace("\uff1a", ":").rpartition(":")
        return _whole(last, words) if colon else None
    clauses = _CLAUSE.split(text.strip())
    if _whole(clauses[0], words) is None:
        later = {index for clause in clauses[1:] if (index := _whole(clause, words)) is not None}
        return first if not later else later.pop() if len(later) == 1 else None
    return first


def _announced(text: str, words: Sequence[str], languages: tuple[str, ...]) -> Iterator[int | None]:
    """Yield the choices after the words for an answer, the last ones first; None for two choices, "yes or no"."""
    noun, glue = _announcing(languages)
    length = 2 * max(map(len, words), default=0) + _MARGIN
    for match in reversed(list(noun.finditer(text))):
        end = match.end()
        for _ in range(_MOST_LINKS):
            window = text[end : end + length]
            if (index := _begun(window, words)) is not None:
                next_words = window.split(maxsplit=2)[1:]
                pair = {_begun(after, words) for after in (" ".join(next_words), *next_words[1:])} - {
                    None,
                    index,
                }
                yield None if pair else index
                break
            if (link := glue.match(text, end)) is None:
                break
            end = link.end()


@cache
def _announcing(languages: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    words = answer_words(languages)
    glue = pattern([*words.answer, *words.correct, *words.option, *words.copula, *words.link])
    return re.compile(f"(?i:{pattern(words.answer)})(?=[^.?!;,])"), re.compile(
        rf"[^\w.?!;,]*(?i:{glue})(?=[^.?!;,])"
    )


def _begun(text: str, words: Sequence[str]) -> int | None:
    """Return which of the words a text begins with, as they are written or in another spelling."""
    return _fitting(text, words, _begins)


def _whole(text: str, words: Sequence[str]) -> int | None:
    return _fitting(text, words, str.__eq__)


def _fitting(text: str, words: Sequence[str], fits: Callable[[str, str], bool]) -> int | None:
    for spelled in (_plain, _folded):
        written, plain = spelled(text), [spelled(word) for word in words]
        fitting = [index for index, word in enumerate(plain) if word and fits(written, word)]
        if fitting:
            longest = max(len(plain[index]) for index in fitting)
            best = [index for index in fitting if len(plain[index]) == longest]
            return best[0] if len(best) == 1 else None
    return None


def _folded(text: str) -> str:
    return _plain(fold(unicodedata.normalize("NFKC", text)))


def _plain(text: str) -> str:
    """Return the text in NFC, case-folded, with runs of spaces joined and marks at both ends removed."""
    folded = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    start, end = 0, len(folded)
    while start < end and unicodedata.category(folded[start])[0] in "PSZ":
        start += 1
    while end > start and unicodedata.category(folded[end - 1])[0] in "PSZ":
        end -= 1
    return folded[start:end]


def _begins(text: str, word: str) -> bool:
    if not text.startswith(word):
        return False
    following = text[len(word) : len(word) + 1]
    if not following:
        return True
    # In scripts without spaces a word may be followed by a letter; there the whole text must be the word.
    return unicodedata.category(following)[0] not in "LMN"


def read_answer(text: str) -> str | None:
    """Return the first line of a text without spaces around it, or None where nothing is left."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else None


PARSERS: Final = ("choice", "letter", "answer", "tagged", "entities")
"""The names that a prompt may give; `harness.prompts.tagged` reads ``tagged`` and ``entities``."""
