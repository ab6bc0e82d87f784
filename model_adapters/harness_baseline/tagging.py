"""The char-ngram tagger: a multinomial logit for every token by itself, over its form and its neighbours.

The features are those of Ratnaparkhi (1996), "A Maximum Entropy Model for Part-Of-Speech Tagging", table 1,
without the previous tags: forms, prefixes and suffixes of up to four characters, and shapes, of the token and
of its neighbours. Every distinct form is hashed once; the rest is array arithmetic.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from harness import Head, TaggedSentence, TrainingSettings
from harness_baseline.hashing import Hashes, combine, hash_text
from harness_baseline.regression import BUCKETS, Schedule, SparseRows, fit_multinomial, score
from harness_baseline.state import FitState

__all__ = ["learn_tagger", "shape_of", "tag"]

_AFFIX = 4
_CHUNK = 1 << 16
"""Tokens scored at a time, which bounds the memory."""

_FORM, _SHAPE, _PREFIX, _SUFFIX = 0, 1, 2, 2 + _AFFIX
"""Columns of a form's hashes: the form, its shape, then its prefixes and suffixes by length."""

_TEMPLATES: tuple[tuple[tuple[int, int], ...], ...] = (
    *(((0, column),) for column in range(2 + 2 * _AFFIX)),
    ((-1, _FORM),),
    ((1, _FORM),),
    ((-2, _FORM),),
    ((2, _FORM),),
    ((-1, _SUFFIX + 2),),
    ((1, _SUFFIX + 2),),
    ((-1, _SHAPE), (0, _SHAPE)),
    ((0, _SHAPE), (1, _SHAPE)),
    ((-1, _FORM), (0, _FORM)),
    ((0, _FORM), (1, _FORM)),
    ((-1, _FORM), (1, _FORM)),
    ((-1, _SUFFIX + 1), (0, _SUFFIX + 1)),
)
"""Each feature joins (offset from the token, column)."""


def learn_tagger(
    examples: Sequence[TaggedSentence], settings: TrainingSettings, seed: int, start: FitState | None
) -> FitState:
    """Return the fitted weights over the tags of the examples."""
    tags = tuple(sorted({tag for example in examples for tag in example.tags or ()}))
    index = {name: position for position, name in enumerate(tags)}
    classes = np.array([index[tag] for example in examples for tag in example.tags or ()], dtype=np.int64)
    weights = np.zeros((BUCKETS, len(tags)), dtype=np.float32)
    if start is not None and start.head is Head.TAGGING and start.labels == tags:
        weights = start.arrays["weights"].copy()
    rows = SparseRows.of_table(_features([example.tokens for example in examples]))
    if len(rows):
        fit_multinomial(rows, classes, weights, Schedule.of_settings(settings, seed, batch=512, rate=0.1))
    return FitState(ref="char-ngram", head=Head.TAGGING, labels=tags, seed=seed, arrays={"weights": weights})


def tag(state: FitState, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the likeliest tag of every token."""
    ids = _features(sentences)
    best: list[int] = []
    for begin in range(0, len(ids), _CHUNK):
        rows = SparseRows.of_table(ids[begin : begin + _CHUNK])
        best.extend(score(rows, state.arrays["weights"]).argmax(axis=1).tolist())
    answers: list[list[str]] = []
    begin = 0
    for sentence in sentences:
        answers.append([state.labels[position] for position in best[begin : begin + len(sentence)]])
        begin += len(sentence)
    return answers


def shape_of(form: str) -> str:
    """Return the form with each run of one class of characters as one letter: ``McCoy-1`` is ``AaAa.0``.

    ``A`` means upper and title case, ``a`` for lower case, ``0`` for numbers, ``.`` for punctuation,
    ``$`` for symbols, ``c`` for letters of scripts without case and for marks.
    """
    classes = [
        _CLASS.get(category := unicodedata.category(character), _CLASS.get(category[0], "c"))
        for character in form
    ]
    return "".join(one for one, before in zip(classes, ["", *classes], strict=False) if one != before)


_CLASS = {"Lu": "A", "Lt": "A", "Ll": "a", "N": "0", "P": ".", "S": "$"}


def _features(sentences: Sequence[Sequence[str]]) -> npt.NDArray[np.int64]:
    """Return the buckets of all tokens of all sentences, shape (tokens, templates)."""
    places: dict[str | None, int] = {None: 0}
    types: list[int] = []
    wanted: list[int] = []
    for sentence in sentences:
        types += [0, 0]
        wanted.extend(range(len(types), len(types) + len(sentence)))
        types.extend(places.setdefault(token, len(places)) for token in sentence)
    types += [0, 0]
    table = np.array([_form_hashes(form) for form in places], dtype=np.uint64)
    type_of = np.array(types, dtype=np.int64)
    tokens = np.array(wanted, dtype=np.int64)
    ids = np.empty((len(tokens), len(_TEMPLATES) + 1), dtype=np.int64)
    ids[:, -1] = hash_text("bias") % BUCKETS
    for number, template in enumerate(_TEMPLATES):
        hashes: Hashes = np.full(len(tokens), number + 1, dtype=np.uint64)
        for offset, column in template:
            hashes = combine(hashes, table[type_of[tokens + offset], column])
        ids[:, number] = (hashes % np.uint64(BUCKETS)).astype(np.int64)
    return ids


def _form_hashes(form: str | None) -> list[int]:
    """Return the hashes of a form's columns; None means outside of the sentence."""
    if form is None:
        return [hash_text("outside", column) for column in range(2 + 2 * _AFFIX)]
    folded = unicodedata.normalize("NFKC", form).casefold()
    lengths = range(1, _AFFIX + 1)
    return [
        hash_text("form", folded),
        hash_text("shape", shape_of(form)),
        *(hash_text("prefix", length, folded[:length]) for length in lengths),
        *(hash_text("suffix", length, folded[-length:]) for length in lengths),
    ]
