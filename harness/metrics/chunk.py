"""F1, precision and recall over chunks of tagged tokens and over tagged character spans, and token accuracy.

Chunks follow the rule of seqeval 0.0.12, with which XTREME(-R) scores WikiANN and UD-POS, the latter on bare UPOS tags:
a tag's first character is its prefix and what follows its last hyphen is its type, so that ``NOUN`` is of prefix ``N``
and type ``NOUN``. Runs of equal bare tags are therefore one chunk, and tags that start with S (``SCONJ``, ``SYM``) are
chunks of one token. seqeval 1.x takes the type from the characters after the first one, which makes one class of
``CCONJ`` and ``SCONJ`` and gives other scores on bare tags. Source: ``get_entities``, ``start_of_chunk`` and
``end_of_chunk`` in seqeval 0.0.12 ``metrics/sequence_labeling.py``; google-research/xtreme ``evaluate.py``.

Spans are those of raw text. XTREME-R (Ruder et al., 2021, section 3) asks for the full text without gold tokens in
WikiANN, while its public scripts score gold tokens; no span metric is published. These are the micro averages of the
CoNLL-2003 shared task (Tjong Kim Sang and De Meulder, 2003, section 2.3: exact matches only) over characters in the
place of tokens. They are not comparable with `chunk_f1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from harness.metrics.metric import Floats, MetricContext, SetMetric, field_of, ratio_from_counts, unfit
from harness.statistics.bootstrap import RowStatistic, ratio
from harness.statistics.interval import Booleans, Integers

Sentences = Sequence[Sequence[str]]
Prefixes = npt.NDArray[np.str_]
Span = tuple[int, int, str]

_OUTSIDE: Final = "O"
"""The tag that follows every sentence, and the prefix of what precedes one."""
_NO_TYPE: Final = 0
"""The number of the empty type, which is that of what precedes a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkTable:
    """The chunks of a corpus; each column has one entry per chunk."""

    sentences: Integers
    """Number of the sentence, counted from 0."""
    starts: Integers
    ends: Integers
    """Position of the first and of the last token in its sentence."""
    types: list[str]


def _check_sentences(predictions: Sentences, references: Sentences) -> Integers:
    """Return the number of tokens of every sentence, shape (n,)."""
    for index, (predicted, gold) in enumerate(zip(predictions, references, strict=True)):
        for side, tags in (("prediction", predicted), ("reference", gold)):
            if isinstance(tags, str):
                raise unfit(index, f"a list of tags as the {side}", repr(tags), unit="Sentence")
            if "" in tags:
                token = list(tags).index("")
                raise ValueError(f"Sentence {index}: the {side} has an empty tag at token {token}.")
        if len(predicted) != len(gold):
            expected = f"{len(gold)} predicted tags, one for each reference tag"
            raise unfit(index, expected, len(predicted), unit="Sentence")
    return np.fromiter(map(len, references), np.int64, len(references))


def _closed(sentences: Sentences) -> list[str]:
    """Return the tags of all sentences after each other, an outside tag after every sentence."""
    return list(chain.from_iterable((*tags, _OUTSIDE) for tags in sentences))


def _prefixes_and_types(*sides: Sequence[str]) -> list[tuple[Prefixes, Integers]]:
    """Return the prefix of every tag and the number of its type, for tags of both sides of a comparison."""
    numbers: dict[str, int] = {}
    codes = [
        np.fromiter((numbers.setdefault(tag, len(numbers)) for tag in tags), np.int64, len(tags))
        for tags in sides
    ]
    type_numbers = {"": _NO_TYPE}
    prefixes = np.array([tag[0] for tag in numbers], dtype="U1")
    types = np.array(
        [type_numbers.setdefault(_type(tag), len(type_numbers)) for tag in numbers], dtype=np.int64
    )
    return [(prefixes[tags], types[tags]) for tags in codes]


def _type(tag: str) -> str:
    return tag.rsplit("-", maxsplit=1)[-1]


def _first_tokens(lengths: Integers) -> Integers:
    """Return the position of the first token of every sentence."""
    return np.concatenate(([0], np.cumsum(lengths)[:-1]))


def _find_chunks(
    prefixes: Prefixes, types: Integers, lengths: Integers
) -> tuple[Integers, Integers, Integers]:
    """Return the first and the last token and the type of the chunks of sentences that an outside tag closes."""
    first = np.zeros(len(prefixes), dtype=np.bool_)
    first[_first_tokens(lengths)] = True
    before, type_before = np.roll(prefixes, 1), np.roll(types, 1)
    before[first], type_before[first] = _OUTSIDE, _NO_TYPE
    changes = types != type_before

    def is_in(values: Prefixes, characters: str) -> Booleans:
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
    return last_begin[after - 1], after - 1, type_before[after]


def _chunk_counts(predictions: Sentences, references: Sentences, context: MetricContext) -> Floats:
    """Return (correct, predicted, gold) chunks of every sentence, shape (n, 3)."""
    lengths = _check_sentences(predictions, references) + 1  # one outside tag closes every sentence
    predicted_tags, gold_tags = _prefixes_and_types(_closed(predictions), _closed(references))
    predicted_starts, predicted_ends, predicted_types = _find_chunks(*predicted_tags, lengths)
    starts, ends, types = _find_chunks(*gold_tags, lengths)
    _, at_predicted, at_gold = np.intersect1d(predicted_ends, ends, assume_unique=True, return_indices=True)
    correct = (predicted_types[at_predicted] == types[at_gold]) & (
        predicted_starts[at_predicted] == starts[at_gold]
    )
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    columns = [
        np.bincount(sentence[last], minlength=len(lengths))
        for last in (ends[at_gold][correct], predicted_ends, ends)
    ]
    return np.stack(columns, axis=1).astype(np.float64)


def _token_counts(predictions: Sentences, references: Sentences, context: MetricContext) -> Floats:
    """Return (correct, all) tokens of every sentence, shape (n, 2)."""
    lengths = _check_sentences(predictions, references)
    pairs = zip(predictions, references, strict=True)
    correct = [sum(map(str.__eq__, predicted, gold)) for predicted, gold in pairs]
    return np.stack([correct, lengths], axis=1).astype(np.float64)


def chunks(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return (type, first token, last token) of every chunk of one sentence, positions counted from 0.

    Raises `ValueError` where a tag is empty.
    """
    table = corpus_chunks([tags])
    return list(zip(table.types, table.starts.tolist(), table.ends.tolist(), strict=True))


def corpus_chunks(sentences: Sentences) -> ChunkTable:
    """Return the chunks of all sentences, by the rule of `chunks`; raises `ValueError` where a tag is empty."""
    if not sentences:
        empty = np.zeros(0, dtype=np.int64)
        return ChunkTable(sentences=empty, starts=empty, ends=empty, types=[])
    lengths = _check_sentences(sentences, sentences) + 1
    tags = _closed(sentences)
    starts, ends, _ = _find_chunks(*_prefixes_and_types(tags)[0], lengths)
    owners = np.repeat(np.arange(len(lengths)), lengths)[ends]
    offsets = _first_tokens(lengths)[owners]
    return ChunkTable(
        sentences=owners,
        starts=starts - offsets,
        ends=ends - offsets,
        types=[_type(tags[end]) for end in ends.tolist()],
    )


def _spans(given: Any, side: str, index: int) -> set[Span]:
    """Return the (start, end, tag) of one text; raises `ValueError` where they are not that, or repeat."""
    if not isinstance(given, list | tuple):
        raise unfit(index, f"a list of spans as the {side}", repr(given))
    spans: set[Span] = set()
    for span in given:
        if not _is_span(span):
            expected = f"[start, end, tag] with 0 <= start < end as a span of the {side}"
            raise unfit(index, expected, repr(span))
        start, end, tag = span
        if (start, end, tag) in spans:
            raise ValueError(f"Item {index}: the {side} has the span {span!r} more than once.")
        spans.add((start, end, tag))
    return spans


def _is_span(span: Any) -> bool:
    if not isinstance(span, list | tuple) or len(span) != 3:
        return False
    start, end, tag = span
    return type(start) is int and type(end) is int and isinstance(tag, str) and 0 <= start < end


def _span_counts(predictions: Sequence[Any], references: Sequence[Any], context: MetricContext) -> Floats:
    """Return (correct, predicted, gold) spans of every text, shape (n, 3)."""
    counts = np.zeros((len(references), 3))
    for index, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        predicted = _spans(field_of(prediction, "spans", index), "prediction", index)
        gold = _spans(reference, "reference", index)
        counts[index] = len(predicted & gold), len(predicted), len(gold)
    return counts


precision_from_counts = RowStatistic(lambda totals: ratio(totals[..., 0], totals[..., 1]))
"""Correct / predicted from the sums of (correct, predicted, gold), or 0."""
recall_from_counts = RowStatistic(lambda totals: ratio(totals[..., 0], totals[..., 2]))
"""Correct / gold from the sums of (correct, predicted, gold), or 0."""
f1_from_counts = RowStatistic(lambda totals: ratio(2 * totals[..., 0], totals[..., 1] + totals[..., 2]))
"""The harmonic mean of precision and recall from the sums of (correct, predicted, gold), or 0."""
chunk_f1 = SetMetric(_chunk_counts, f1_from_counts)
"""The micro-averaged F1 over chunks (type, first token, last token) of all sentences.

Predictions and references are one list of tags a sentence. The counts have the columns (correct, predicted, gold);
sentences are scored apart from each other, so a sentence's row does not depend on its neighbours. Raises `ValueError`,
naming the sentence, where the two sides have different lengths or a tag is empty.
"""
chunk_precision = SetMetric(_chunk_counts, precision_from_counts)
"""The share of predicted chunks that are correct; the rest is as in `chunk_f1`."""
chunk_recall = SetMetric(_chunk_counts, recall_from_counts)
"""The share of gold chunks that were predicted; the rest is as in `chunk_f1`."""
token_accuracy = SetMetric(_token_counts, ratio_from_counts)
"""The share of tokens, over all sentences, whose predicted tag equals the reference tag; the rest is as in `chunk_f1`.
"""
span_f1 = SetMetric(_span_counts, f1_from_counts)
"""The micro-averaged F1 over the spans (start, end, tag) of all texts.

A prediction is ``{"spans": [[start, end, tag], ...]}`` or the bare list, a reference the bare list, offsets in Unicode
code points. The counts have the columns (correct, predicted, gold). The value is 0 where no span is predicted or none
is gold. Raises `ValueError`, naming the item, where a span is none or is given twice.
"""
span_precision = SetMetric(_span_counts, precision_from_counts)
"""The share of predicted spans that are gold spans; the rest is as in `span_f1`."""
span_recall = SetMetric(_span_counts, recall_from_counts)
"""The share of gold spans that were predicted; the rest is as in `span_f1`."""
