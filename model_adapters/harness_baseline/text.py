r"""Texts as the baselines read them: folded, as words with their offsets, and as shapes, in any script.

A word is a run of characters that are neither space, punctuation, symbol nor control; combining marks belong
to the word (``\w`` of the module `re` would split Devanagari words at their vowel signs). Scripts that are
written without spaces (Han, kana, Thai, Lao, Khmer, Myanmar) give one word per character, with its marks. A
punctuation mark or symbol is a word by itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise

from harness.models import SpanAnswer

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


def no_span() -> SpanAnswer:
    """Return the answer to a question about a context without words."""
    return SpanAnswer(text="", start=-1, end=-1, score=0.0)


def fold(text: str) -> str:
    """Return the text in NFKC and case-folded; a lone surrogate becomes a question mark."""
    return unicodedata.normalize("NFKC", text).casefold().encode("utf-8", "replace").decode("utf-8")


def normalise(text: str) -> str:
    """Return the folded text with one space between words and around the text."""
    return f" {' '.join(fold(text).split())} "


def content_words(text: str) -> list[str]:
    """Return the folded words of the text without punctuation."""
    return [word.form for word in split_words(normalise(text)) if not is_punctuation(word.form)]


def shape_of(form: str) -> str:
    """Return the form with each run of one class of characters as one letter: ``McCoy-1`` is ``AaAa.0``.

    ``A`` means upper and title case, ``a`` for lower case, ``0`` for numbers, ``.`` for punctuation,
    ``$`` for symbols, ``c`` for letters of scripts without case and for marks.
    """
    categories = (unicodedata.category(character) for character in form)
    classes = (_CLASS.get(category) or _CLASS.get(category[0], "c") for category in categories)
    return "".join(name for name, _ in groupby(classes))


_CLASS = {"Lu": "A", "Lt": "A", "Ll": "a", "N": "0", "P": ".", "S": "$"}

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


_STEPS = 8


def size_bucket(count: int) -> int:
    """Return the number itself up to 3, then one bucket for each doubling."""
    return count if count < 4 else 2 + count.bit_length() - 1


def overlap_features(first: str, second: str) -> list[str]:
    """Return the names of the buckets that a pair of texts falls into; empty where the texts are empty."""
    first_words, second_words = content_words(first), content_words(second)
    grams, other_grams = _trigrams(first), _trigrams(second)
    buckets = {
        "words of 2 in 1": _shared(first_words, second_words),
        "words of 1 in 2": _shared(second_words, first_words),
        "bigrams of 2 in 1": _shared(list(pairwise(first_words)), list(pairwise(second_words))),
        "trigrams of 2 in 1": _shared(grams, other_grams),
        "trigrams of 1 in 2": _shared(other_grams, grams),
        "numbers of 2 in 1": _shared(_numbers(first_words), _numbers(second_words)),
        "new words": size_bucket((Counter(second_words) - Counter(first_words)).total()),
        "missing words": size_bucket((Counter(first_words) - Counter(second_words)).total()),
        "length": _share_bucket(len(second_words), 2 * len(first_words)),
        "same bag": int(sorted(first_words) == sorted(second_words)),
        "same order": int(first_words == second_words),
    }
    crossed = [
        ("words of 2 in 1", "words of 1 in 2"),
        ("words of 2 in 1", "bigrams of 2 in 1"),
        ("trigrams of 2 in 1", "length"),
        ("new words", "missing words"),
    ]
    names = [f"{name}={bucket}" for name, bucket in buckets.items()]
    return names + [f"{name1}&{name2}={buckets[name1]}&{buckets[name2]}" for name1, name2 in crossed]


def _shared(inside: Sequence[object], elements: Sequence[object]) -> int:
    """Return the bucket of the share of the parts that occur in `inside`, with repetition."""
    return _share_bucket((Counter(elements) & Counter(inside)).total(), len(elements))


def _share_bucket(count: float, total: float) -> int:
    """Return 0 for none, `_STEPS` + 1 for all, 1 to `_STEPS` in between, and -1 for an empty whole."""
    if not total:
        return -1
    if count <= 0:
        return 0
    return _STEPS + 1 if count >= total else 1 + int(_STEPS * count / total)


def _trigrams(text: str) -> list[str]:
    folded = normalise(text)
    return [folded[start : start + 3] for start in range(len(folded) - 2)]


def _numbers(words: Sequence[str]) -> list[str]:
    return [word for word in words if any(character.isdigit() for character in word)]
