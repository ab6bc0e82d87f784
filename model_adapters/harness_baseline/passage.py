"""A context as the span extractor sees it: words as arrays, sentences, and the spans that can be answers."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from harness_baseline.hashing import Hashes, hash_text
from harness_baseline.tagging import shape_of
from harness_baseline.word import Word, split_words

__all__ = ["NUMBER", "Passage", "read_passage", "stem_of"]

Integers = npt.NDArray[np.int64]

_LONGEST = 12
"""Words of the longest candidate; 97 % of the answers of SQuAD are no longer."""
_LONGEST_UNSPACED = 20
"""The same in characters, for scripts without spaces."""
_STEM = 5
_ENDS = frozenset(".!?\u061f\u06d4\u0964\u0965\u1362\u3002\uff01\uff1f")
_EDGES = frozenset("%$€£¥°")

NUMBER, CAPITAL, LOWER, CASELESS, MARK = range(5)
"""Classes of words, for `Passage.classes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The words of a context, as parallel arrays of shape (words,)."""

    words: tuple[Word, ...]
    stems: tuple[str, ...]
    """The first characters of the folded words, a language-neutral replacement for stemming."""
    forms: Hashes
    shapes: Hashes
    classes: Integers
    sentences: Integers
    """Number of the sentence of each word."""
    firsts: Integers
    """Index of the first word of every candidate, shape (candidates,)."""
    lasts: Integers
    """Index of the last word of every candidate, shape (candidates,)."""


def stem_of(form: str) -> str:
    """Return the first five characters of the folded word."""
    return unicodedata.normalize("NFKC", form).casefold()[:_STEM]


@lru_cache(maxsize=512)
def read_passage(context: str) -> Passage:
    """Return the words, the sentences and the candidates of a context."""
    words = tuple(split_words(context))
    classes = np.array([_class_of(word.form) for word in words], dtype=np.int64)
    sentences = _sentence_numbers(context, words)
    firsts, lasts = _candidates(words, classes, sentences)
    return Passage(
        words=words,
        stems=tuple(stem_of(word.form) for word in words),
        forms=np.array([hash_text(word.form.casefold()) for word in words], dtype=np.uint64),
        shapes=np.array([hash_text(shape_of(word.form)) for word in words], dtype=np.uint64),
        classes=classes,
        sentences=sentences,
        firsts=firsts,
        lasts=lasts,
    )


def _class_of(form: str) -> int:
    if any(character.isdigit() for character in form):
        return NUMBER
    category = unicodedata.category(form[0])
    if category[0] in "PS":
        return MARK
    return {"Lu": CAPITAL, "Lt": CAPITAL, "Ll": LOWER}.get(category, CASELESS)


def _sentence_numbers(context: str, words: tuple[Word, ...]) -> Integers:
    """Return the sentence of each word; a full stop ends one only before white space or the end."""
    numbers: list[int] = []
    current = 0
    for word in words:
        numbers.append(current)
        following = context[word.end : word.end + 1]
        if word.form in _ENDS and (word.form != "." or not following or following.isspace()):
            current += 1
    return np.array(numbers, dtype=np.int64)


def _candidates(words: tuple[Word, ...], classes: Integers, sentences: Integers) -> tuple[Integers, Integers]:
    """Return first and last words of the spans inside one sentence that neither begin nor end with a mark."""
    edge = (classes != MARK) | np.array([word.form in _EDGES for word in words], dtype=bool)
    single = np.array([word.end - word.start == 1 for word in words], dtype=bool) & (classes == CASELESS)
    longest = _LONGEST_UNSPACED if len(words) and single.mean() > 0.5 else _LONGEST
    firsts: list[Integers] = []
    lasts: list[Integers] = []
    for length in range(min(longest, len(words))):
        first = np.arange(len(words) - length, dtype=np.int64)
        last = first + length
        kept = edge[first] & edge[last] & (sentences[first] == sentences[last])
        firsts.append(first[kept])
        lasts.append(last[kept])
    empty = np.zeros(0, dtype=np.int64)
    return np.concatenate([empty, *firsts]), np.concatenate([empty, *lasts])
