r"""Words with their offsets, in any script and without a dictionary.

A word is a run of characters that are neither space, punctuation, symbol nor control; combining marks belong
to the word (``\w`` of the module `re` would split Devanagari words at their vowel signs). Scripts that are
written without spaces (Han, kana, Thai, Lao, Khmer, Myanmar) give one word per character, with its marks. A
punctuation mark or symbol is a word by itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

__all__ = ["Word", "is_punctuation", "split_words"]

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3096\u3099-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff\U00020000-\U0003ffff"
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text: ``text[start:end] == form``."""

    form: str
    start: int
    end: int


def split_words(text: str) -> list[Word]:
    """Return the words of the text from left to right, with offsets in code points."""
    return [Word(match.group(), match.start(), match.end()) for match in _pattern().finditer(text)]


def is_punctuation(form: str) -> bool:
    """Return whether the word is a single punctuation mark or symbol."""
    return len(form) == 1 and unicodedata.category(form)[0] in "PS"


_LAST_POINT = 0x1FFFF
"""The planes above hold ideographs, tags and private use, no punctuation and no spaces."""


@cache
def _pattern() -> re.Pattern[str]:
    categories = [unicodedata.category(chr(point)) for point in range(_LAST_POINT + 1)]
    symbols = _character_class([name[0] in "PS" for name in categories])
    blanks = _character_class([name[0] == "Z" or name == "Cc" for name in categories])
    marks = _character_class([name[0] == "M" for name in categories])
    return re.compile(f"[{_UNSPACED}][{marks}]*|[^{symbols}{blanks}{_UNSPACED}]+|[{symbols}]")


def _character_class(inside: Sequence[bool]) -> str:
    """Return the inside of ``[...]`` that matches the code points that are inside."""
    ranges: list[str] = []
    first: int | None = None
    for point, is_inside in enumerate([*inside, False]):
        if is_inside and first is None:
            first = point
        elif not is_inside and first is not None:
            ranges.append(f"\\U{first:08x}-\\U{point - 1:08x}")
            first = None
    return "".join(ranges)
