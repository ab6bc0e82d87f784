"""Span F1, precision and recall: tagged character spans of raw text, right where start, end and tag are equal.

XTREME-R (Ruder et al., 2021, section 3) asks for the full text without gold tokens in WikiANN, while its public
scripts score gold tokens; no span metric is published. These are the micro averages of the CoNLL-2003 shared task
(Tjong Kim Sang and De Meulder, 2003, section 2.3: exact matches only) over characters in the place of tokens. They
are not comparable with `chunk_f1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.metrics.chunk import f1_from_counts, precision_from_counts, recall_from_counts
from harness.metrics.metric import Floats, MetricContext, MetricResult
from harness.metrics.pairing import check_pairs, field_of

__all__ = ["span_f1", "span_precision", "span_recall"]

Span = tuple[int, int, str]


def _spans(given: Any, side: str, index: int) -> set[Span]:
    """Return the (start, end, tag) of one text; raises `ValueError` where they are not that, or repeat."""
    if not isinstance(given, list | tuple):
        raise ValueError(f"Item {index}: expected a list of spans as the {side}, found {given!r}.")
    found: set[Span] = set()
    for span in given:
        if not _is_span(span):
            raise ValueError(
                f"Item {index}: expected [start, end, tag] with 0 <= start < end as a span of the {side}, "
                f"found {span!r}."
            )
        start, end, tag = span
        if (start, end, tag) in found:
            raise ValueError(f"Item {index}: the {side} has the span {span!r} more than once.")
        found.add((start, end, tag))
    return found


def _is_span(span: Any) -> bool:
    if not isinstance(span, list | tuple) or len(span) != 3:
        return False
    start, end, tag = span
    return type(start) is int and type(end) is int and isinstance(tag, str) and 0 <= start < end


def _counts(predictions: Sequence[Any], references: Sequence[Any]) -> Floats:
    """Return (correct, predicted, gold) spans of every text, shape (n, 3)."""
    check_pairs(predictions, references)
    counts = np.zeros((len(references), 3))
    for index, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        predicted = _spans(field_of(prediction, "spans", index), "prediction", index)
        gold = _spans(reference, "reference", index)
        counts[index] = len(predicted & gold), len(predicted), len(gold)
    return counts


def span_f1(predictions: Sequence[Any], references: Sequence[Any], context: MetricContext) -> MetricResult:
    """Return the micro-averaged F1 over the spans (start, end, tag) of all texts.

    A prediction is ``{"spans": [[start, end, tag], ...]}`` or the bare list, a reference the bare list, offsets in
    Unicode code points. `counts` has the columns (correct, predicted, gold). The value is 0 where no span is
    predicted or none is gold. Raises `ValueError`, naming the item, where a span is none or is given twice.
    """
    counts = _counts(predictions, references)
    return MetricResult(value=f1_from_counts(counts.sum(axis=0)), counts=counts)


def span_precision(
    predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
) -> MetricResult:
    """Return the share of predicted spans that are gold spans; the rest is as in `span_f1`."""
    counts = _counts(predictions, references)
    return MetricResult(value=precision_from_counts(counts.sum(axis=0)), counts=counts)


def span_recall(
    predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
) -> MetricResult:
    """Return the share of gold spans that were predicted; the rest is as in `span_f1`."""
    counts = _counts(predictions, references)
    return MetricResult(value=recall_from_counts(counts.sum(axis=0)), counts=counts)
