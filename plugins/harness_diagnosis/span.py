"""Attributes of tagged sentences and of their spans."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from harness.analysis import spans_of
from harness.data import FeatureContext, Items, Spans
from harness.languages import character_counts, word_counts

Floats = npt.NDArray[np.float64]
_OUTSIDE = "O"


def _tokens(items: Items) -> list[list[str]] | None:
    tokens = [fields.get("tokens") for fields in items.fields]
    return None if any(own is None for own in tokens) else tokens  # type: ignore[return-value]


def sentence_length(items: Items, context: FeatureContext) -> Floats | None:
    """Return sLen: the tokens of every sentence, or the words of a raw text."""
    if items.kind == "text_marking":
        return items.word_counts("text")
    tokens = _tokens(items)
    return None if tokens is None else np.fromiter(map(len, tokens), np.float64, len(tokens))


def density(items: Items, context: FeatureContext) -> Floats | None:
    """Return eDen: the share of a sentence's tokens, or of a raw text's characters, inside gold entities.

    XTREME-R uses entity density in its Tables 26 to 28 and does not define it. None for bare tags, where every token
    is a span.
    """
    if items.kind == "token_tagging":
        if not any(label[:2] == "B-" for label in items.labels):
            return None
        inside = [len(tags) - tags.count(_OUTSIDE) for tags in items.references]
        sizes = [len(tags) for tags in items.references]
    else:
        texts = items.texts("text")
        gold = spans_of(items, items.references, "gold")
        if texts is None or gold is None:
            return None
        inside = np.bincount(gold.items, weights=gold.ends - gold.starts, minlength=len(items)).tolist()
        sizes = [len(text) for text in texts]
    return np.divide(inside, np.maximum(sizes, 1), dtype=np.float64)


def tag(items: Items, context: FeatureContext) -> Sequence[str]:
    """Return the tag of every span."""
    assert context.spans is not None
    return context.spans.tags


def position(items: Items, context: FeatureContext) -> Floats | None:
    """Return rPos: the first token of a span, from 0, over the tokens of its sentence (raw text: characters)."""
    spans = context.spans
    assert spans is not None
    sizes = _sizes(items, spans)
    return None if sizes is None else np.asarray(spans.starts / np.maximum(sizes[spans.items], 1))


def _sizes(items: Items, spans: Spans) -> Floats | None:
    if spans.unit == "token":
        return sentence_length(items, FeatureContext())
    texts = items.texts("text")
    return None if texts is None else np.fromiter(map(len, texts), np.float64, len(texts))


def span_length(items: Items, context: FeatureContext) -> Floats | None:
    """Return eLen: the tokens of every span, or the words of a span of raw text; None for bare tags."""
    spans = context.spans
    assert spans is not None
    if spans.unit == "token":
        if not any(label[:2] == "B-" for label in items.labels):
            return None
        return (spans.ends - spans.starts).astype(np.float64)
    texts = _span_texts(items, spans)
    return None if texts is None else word_counts(texts).astype(np.float64)


def characters(items: Items, context: FeatureContext) -> Floats | None:
    """Return tLen: the characters of every span without marks, spaces between its tokens included."""
    spans = context.spans
    assert spans is not None
    if spans.unit == "character":
        texts = _span_texts(items, spans)
        return None if texts is None else character_counts(texts).astype(np.float64)
    tokens = _tokens(items)
    if tokens is None:
        return None
    counts = items.once("token characters", lambda: _token_characters(tokens))
    upto, first = counts
    begins = first[spans.items] + spans.starts
    ends = first[spans.items] + spans.ends
    between = spans.ends - spans.starts - 1 if items.language.segmentation == "space" else 0
    return np.asarray(upto[ends] - upto[begins] + between, dtype=np.float64)


def _token_characters(tokens: Sequence[Sequence[str]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the characters before every token of the corpus, and the first token of every sentence."""
    counts = character_counts([token for own in tokens for token in own])
    sizes = np.fromiter(map(len, tokens), np.int64, len(tokens))
    return np.concatenate(([0], np.cumsum(counts))), np.cumsum(sizes) - sizes


def _span_texts(items: Items, spans: Spans) -> list[str] | None:
    texts = items.texts("text")
    if texts is None:
        return None
    rows = zip(spans.items.tolist(), spans.starts.tolist(), spans.ends.tolist(), strict=True)
    return [texts[item][start:end] for item, start, end in rows]
