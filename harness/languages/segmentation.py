"""Words and characters of texts in any script, counted for many texts at a time.

A word is a maximal run of letters, numbers and what is attached to them (marks, joiners, one apostrophe between two
letters). In the scripts that put no space between words (Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar) every
letter is one, and marks are not counted: the script decides, not the language, so that a Thai name in an English
text is counted as in a Thai one. Punctuation and symbols are no words.

Source: categories of the Unicode Character Database; the attachment of marks and formats is rule WB4, the apostrophe
rules WB6 and WB7 of Unicode Standard Annex 29. XTREME-R (Ruder et al., 2021, appendix K) counts "tokens" and leaves
open whose; ExplainaBoard splits at spaces, so that a Thai or Khmer text has the length 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from harness.languages.character import is_extender, is_unspaced, is_wordlike

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

BLOCK: Final = 500_000
"""Characters that are looked at together: some MB of arrays."""
_OTHER, _WORDLIKE, _EXTENDER, _UNSPACED, _APOSTROPHE = range(5)
_UNKNOWN: Final = 255
_APOSTROPHES = {"'", "\u2019"}
_BREAK = "\n"
"""Stands between texts; no word goes across it."""


def word_counts(texts: Sequence[str]) -> Integers:
    """Return the number of words of every text, shape (n,)."""
    return _counted(texts, _count_words)


def character_counts(texts: Sequence[str]) -> Integers:
    """Return the number of characters of every text without marks and format characters, shape (n,)."""
    return _counted(texts, _count_characters)


def unspaced_counts(texts: Sequence[str]) -> Integers:
    """Return how many words of every text are single letters of a script without spaces between words, shape (n,)."""
    return _counted(texts, _count_unspaced)


def words(texts: Sequence[str]) -> list[list[str]]:
    """Return the words of every text, in their order; ``len`` of each is its `word_counts`."""
    words_by_text: list[list[str]] = []
    for block in text_blocks(texts):
        joined = _BREAK.join(block)
        bounds = _bounds(joined)
        breaks = np.cumsum([0, *(len(text) + 1 for text in block)])
        cuts = np.searchsorted(bounds.starts, breaks).tolist()
        both = zip(bounds.starts.tolist(), bounds.ends.tolist(), strict=True)
        pieces = [joined[start:end] for start, end in both]
        words_by_text += [pieces[first:last] for first, last in itertools.pairwise(cuts)]
    return words_by_text


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """Return the code points of a text, shape (len(text),)."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """Where the words of a text begin and end, as offsets of code points."""

    starts: Integers
    ends: Integers


def _counted(texts: Sequence[str], count: Callable[[Sequence[str]], Integers]) -> Integers:
    """Return a count of every text; those that repeat (the context of several questions) are counted once."""
    index_of: dict[str, int] = {}
    rows = np.fromiter((index_of.setdefault(text, len(index_of)) for text in texts), np.int64, len(texts))
    counts = [count(block) for block in text_blocks(list(index_of))]
    return np.concatenate(counts)[rows] if counts else np.zeros(0, dtype=np.int64)


def text_blocks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield runs of texts whose characters are counted together, of about `BLOCK` characters each."""
    start, size = 0, 0
    for index, text in enumerate(texts):
        size += len(text) + 1
        if size >= BLOCK:
            yield texts[start : index + 1]
            start, size = index + 1, 0
    if start < len(texts):
        yield texts[start:]


def _count_words(texts: Sequence[str]) -> Integers:
    starts = _bounds(_BREAK.join(texts)).starts
    breaks = np.cumsum([0, *(len(text) + 1 for text in texts)])
    return np.diff(np.searchsorted(starts, breaks)).astype(np.int64)


def _count_unspaced(texts: Sequence[str]) -> Integers:
    return _per_text(texts, _classes(_BREAK.join(texts)) == _UNSPACED)


def _count_characters(texts: Sequence[str]) -> Integers:
    return _per_text(texts, _classes(_BREAK.join(texts)) != _EXTENDER)


def _per_text(texts: Sequence[str], marked: npt.NDArray[np.bool_]) -> Integers:
    """Return how many characters of every text are marked; `marked` is of the joined texts."""
    upto = np.concatenate(([0], np.cumsum(marked)))
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    starts = np.concatenate(([0], np.cumsum(sizes + 1)[:-1]))
    return (upto[starts + sizes] - upto[starts]).astype(np.int64)


def _bounds(text: str) -> _Bounds:
    classes = _classes(text)
    positions = np.flatnonzero(classes != _EXTENDER)
    base_classes = classes[positions]
    base_classes = np.where(_is_joining(base_classes), np.uint8(_WORDLIKE), base_classes)
    before = np.concatenate(([np.uint8(_OTHER)], base_classes[:-1]))
    begins = (base_classes == _UNSPACED) | ((base_classes == _WORDLIKE) & (before != _WORDLIKE))
    after = np.concatenate((base_classes[1:], [np.uint8(_OTHER)]))
    closes = (base_classes == _UNSPACED) | ((base_classes == _WORDLIKE) & (after != _WORDLIKE))
    # What is attached to the last character of a word belongs to it: the word ends where the next character begins.
    following = np.concatenate((positions[1:], [len(text)]))
    return _Bounds(starts=positions[begins], ends=following[closes])


def _is_joining(classes: Bytes) -> npt.NDArray[np.bool_]:
    """Return which characters are an apostrophe between two letters of a word."""
    joining = np.zeros(len(classes), dtype=np.bool_)
    joining[1:-1] = (classes[1:-1] == _APOSTROPHE) & (classes[:-2] == _WORDLIKE) & (classes[2:] == _WORDLIKE)
    return joining


class CharacterClasses:
    """The class of every code point, computed when the character is first met."""

    def __init__(self, class_of: Callable[[str], int]) -> None:
        """Make the table; `class_of` returns the class of a character, less than 255."""
        self._class_of = class_of
        self._table = np.full(0x110000, _UNKNOWN, dtype=np.uint8)

    def of(self, text: str) -> Bytes:
        """Return the class of every character of a text, shape (len(text),)."""
        points = code_points(text)
        classes = self._table[points]
        unknown = np.unique(points[classes == _UNKNOWN])
        if len(unknown):
            self._table[unknown] = [self._class_of(chr(point)) for point in unknown.tolist()]
            classes = self._table[points]
        return classes


def _classes(text: str) -> Bytes:
    return _word_classes().of(text)


@cache
def _word_classes() -> CharacterClasses:
    return CharacterClasses(_class_of)


def _class_of(character: str) -> int:
    if is_extender(character):
        return _EXTENDER
    if is_unspaced(character):
        return _UNSPACED
    if is_wordlike(character):
        return _WORDLIKE
    return _APOSTROPHE if character in _APOSTROPHES else _OTHER
