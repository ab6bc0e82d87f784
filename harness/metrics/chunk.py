"""Chunk F1, precision and recall by the rule of seqeval 0.0.12, and token accuracy.

XTREME(-R) scores WikiANN and UD-POS with this rule, the latter on bare UPOS tags: a tag's first character is
its prefix and what follows its last hyphen is its type, so that ``NOUN`` is of prefix ``N`` and type
``NOUN``. Runs of equal bare tags are therefore one chunk, and tags that start with S (``SCONJ``, ``SYM``) are
chunks of one token. seqeval 1.x takes the type from the characters after the first one, which makes one class
of ``CCONJ`` and ``SCONJ`` and gives other scores on bare tags.

Source: ``get_entities``, ``start_of_chunk`` and ``end_of_chunk`` in seqeval 0.0.12
``metrics/sequence_labeling.py``; google-research/xtreme ``evaluate.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

from harness.metrics.metric import Floats, MetricContext, MetricResult
from harness.metrics.pairing import check_pairs, ratio_from_counts

__all__ = [
    "ChunkTable",
    "chunk_f1",
    "chunk_precision",
    "chunk_recall",
    "chunks",
    "corpus_chunks",
    "f1_from_counts",
    "precision_from_counts",
    "recall_from_counts",
    "token_accuracy",
]

Sentences = Sequence[Sequence[str]]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

_OUTSIDE: Final = "O"
"""The tag that follows every sentence, and the prefix of what precedes one."""
_NO_TYPE: Final = 0
"""The number of the empty type, which is that of what precedes a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chunks:
    """The chunks of a corpus in which one outside tag follows every sentence."""

    types: Integers
    """Shape (chunks,): number of the chunk's type."""
    starts: Integers
    ends: Integers
    """Shape (chunks,): position of the first and of the last token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkTable:
    """The chunks of a corpus; each column has one entry per chunk."""

    sentences: Integers
    """Number of the sentence, counted from 0."""
    starts: Integers
    ends: Integers
    """Position of the first and of the last token in its sentence."""
    types: list[str]


class _TagTable:
    """Numbers the distinct tags, types and prefixes of both sides, so that the rule runs on arrays."""

    def __init__(self) -> None:
        self._tags: dict[str, int] = {}

    def encode(self, tags: Sequence[str]) -> Integers:
        """Return the number of every tag."""
        numbers = self._tags
        return np.fromiter((numbers.setdefault(tag, len(numbers)) for tag in tags), np.int64, len(tags))

    def prefixes(self) -> npt.NDArray[np.str_]:
        """Return the first character of every distinct tag."""
        return np.array([tag[0] for tag in self._tags], dtype="U1")

    def types(self) -> Integers:
        """Return the number of every distinct tag's type."""
        numbers = {"": _NO_TYPE}
        parts = (tag.split("-")[-1] for tag in self._tags)
        return np.fromiter(
            (numbers.setdefault(part, len(numbers)) for part in parts), np.int64, len(self._tags)
        )


def _check_sentences(predictions: Sentences, references: Sentences) -> Integers:
    """Return the number of tokens of every sentence, shape (n,)."""
    check_pairs(predictions, references)
    for index, (predicted, gold) in enumerate(zip(predictions, references, strict=True)):
        for side, tags in (("prediction", predicted), ("reference", gold)):
            if isinstance(tags, str):
                raise ValueError(f"Sentence {index}: expected a list of tags as the {side}, found {tags!r}.")
            if "" in tags:
                raise ValueError(
                    f"Sentence {index}: the {side} has an empty tag at token {list(tags).index('')}."
                )
        if len(predicted) != len(gold):
            raise ValueError(
                f"Sentence {index}: expected {len(gold)} predicted tags, one for each reference tag, "
                f"found {len(predicted)}."
            )
    return np.fromiter(map(len, references), np.int64, len(references))


def _find_chunks(prefixes: npt.NDArray[np.str_], types: Integers, first: Booleans) -> _Chunks:
    """Return the chunks of tokens given by prefix and type; `first` marks the first token of a sentence."""
    before, type_before = np.roll(prefixes, 1), np.roll(types, 1)
    before[first], type_before[first] = _OUTSIDE, _NO_TYPE
    changes = types != type_before

    def is_in(values: npt.NDArray[np.str_], characters: str) -> Booleans:
        return np.isin(values, list(characters))

    ends = (
        is_in(before, "ES")
        | (is_in(before, "BI") & is_in(prefixes, "BSO"))
        | (~is_in(before, "O.") & changes)
    )
    begins = (
        is_in(prefixes, "BS")
        | (is_in(before, "ESO") & is_in(prefixes, "EI"))
        | (~is_in(prefixes, "O.") & changes)
    )

    positions = np.arange(len(prefixes))
    # A chunk can end where none began (S-X followed by L-X): the published loop then keeps the last
    # beginning.
    last_begin = np.maximum.accumulate(np.where(begins | first, positions, 0))
    after = np.flatnonzero(ends)
    return _Chunks(types=type_before[after], starts=last_begin[after - 1], ends=after - 1)


def _chunk_counts(predictions: Sentences, references: Sentences) -> Floats:
    """Return (correct, predicted, gold) chunks of every sentence, shape (n, 3)."""
    lengths = _check_sentences(predictions, references) + 1  # one outside tag closes every sentence
    table = _TagTable()
    predicted_tags, gold_tags = (
        table.encode(list(chain.from_iterable((*tags, _OUTSIDE) for tags in side)))
        for side in (predictions, references)
    )
    prefixes, types = table.prefixes(), table.types()
    first = np.zeros(len(gold_tags), dtype=np.bool_)
    first[np.concatenate(([0], np.cumsum(lengths)[:-1]))] = True
    predicted = _find_chunks(prefixes[predicted_tags], types[predicted_tags], first)
    gold = _find_chunks(prefixes[gold_tags], types[gold_tags], first)

    _, at_predicted, at_gold = np.intersect1d(
        predicted.ends, gold.ends, assume_unique=True, return_indices=True
    )
    correct = (predicted.types[at_predicted] == gold.types[at_gold]) & (
        predicted.starts[at_predicted] == gold.starts[at_gold]
    )
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    ends = (gold.ends[at_gold][correct], predicted.ends, gold.ends)
    return np.stack([np.bincount(sentence[end], minlength=len(lengths)) for end in ends], axis=1).astype(
        np.float64
    )


def chunks(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return (type, first token, last token) of every chunk of one sentence, positions counted from 0.

    Raises `ValueError` where a tag is empty.
    """
    _check_sentences([tags], [tags])
    closed = [*tags, _OUTSIDE]
    table = _TagTable()
    numbers = table.encode(closed)
    first = np.arange(len(closed)) == 0
    found = _find_chunks(table.prefixes()[numbers], table.types()[numbers], first)
    return [
        (closed[end].split("-")[-1], start, end)
        for start, end in zip(found.starts.tolist(), found.ends.tolist(), strict=True)
    ]


def corpus_chunks(sentences: Sentences) -> ChunkTable:
    """Return the chunks of all sentences, by the rule of `chunks`; raises `ValueError` where a tag is empty."""
    if not sentences:
        empty = np.zeros(0, dtype=np.int64)
        return ChunkTable(sentences=empty, starts=empty, ends=empty, types=[])
    lengths = _check_sentences(sentences, sentences) + 1
    flat = list(chain.from_iterable((*tags, _OUTSIDE) for tags in sentences))
    table = _TagTable()
    numbers = table.encode(flat)
    starts_of = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    first = np.zeros(len(flat), dtype=np.bool_)
    first[starts_of] = True
    found = _find_chunks(table.prefixes()[numbers], table.types()[numbers], first)
    owners = np.repeat(np.arange(len(lengths)), lengths)[found.ends]
    return ChunkTable(
        sentences=owners,
        starts=found.starts - starts_of[owners],
        ends=found.ends - starts_of[owners],
        types=[flat[end].split("-")[-1] for end in found.ends.tolist()],
    )


def precision_from_counts(totals: Floats) -> float:
    """Return correct / predicted from the sums of (correct, predicted, gold), or 0."""
    correct, predicted, _ = totals.tolist()
    return correct / predicted if predicted else 0.0


def recall_from_counts(totals: Floats) -> float:
    """Return correct / gold from the sums of (correct, predicted, gold), or 0."""
    correct, _, gold = totals.tolist()
    return correct / gold if gold else 0.0


def f1_from_counts(totals: Floats) -> float:
    """Return the harmonic mean of precision and recall from the sums of (correct, predicted, gold), or 0."""
    precision, recall = precision_from_counts(totals), recall_from_counts(totals)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def chunk_f1(predictions: Sentences, references: Sentences, context: MetricContext) -> MetricResult:
    """Return the micro-averaged F1 over chunks (type, first token, last token) of all sentences.

    Predictions and references are one list of tags a sentence. `counts` has the columns (correct, predicted,
    gold); sentences are scored apart from each other, so a sentence's row does not depend on its neighbours.
    Raises `ValueError`, naming the sentence, where the two sides have different lengths or a tag is empty.
    """
    counts = _chunk_counts(predictions, references)
    return MetricResult(value=f1_from_counts(counts.sum(axis=0)), counts=counts)


def chunk_precision(predictions: Sentences, references: Sentences, context: MetricContext) -> MetricResult:
    """Return the share of predicted chunks that are correct; the rest is as in `chunk_f1`."""
    counts = _chunk_counts(predictions, references)
    return MetricResult(value=precision_from_counts(counts.sum(axis=0)), counts=counts)


def chunk_recall(predictions: Sentences, references: Sentences, context: MetricContext) -> MetricResult:
    """Return the share of gold chunks that were predicted; the rest is as in `chunk_f1`."""
    counts = _chunk_counts(predictions, references)
    return MetricResult(value=recall_from_counts(counts.sum(axis=0)), counts=counts)


def token_accuracy(predictions: Sentences, references: Sentences, context: MetricContext) -> MetricResult:
    """Return the share of tokens, over all sentences, whose predicted tag equals the reference tag.

    `counts` has the columns (correct, tokens). Arguments and errors are those of `chunk_f1`.
    """
    lengths = _check_sentences(predictions, references)
    pairs = zip(predictions, references, strict=True)
    correct = np.fromiter(
        (sum(map(str.__eq__, predicted, gold)) for predicted, gold in pairs), np.int64, len(lengths)
    )
    counts = np.stack([correct, lengths], axis=1).astype(np.float64)
    return MetricResult(value=ratio_from_counts(counts.sum(axis=0)), counts=counts)
