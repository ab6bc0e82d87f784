"""The char-ngram baseline: hashed character n-grams as vectors, and linear models over sparse features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness import (
    Choice,
    ClassificationExample,
    FloatArray,
    Head,
    HeadSpec,
    MultipleChoiceExample,
    RetrievalPair,
    SpanAnswer,
    SpanExample,
    SpanQuestion,
    TaggedSentence,
    TextInput,
    TrainingSettings,
)
from harness_baseline.choice import choose, learn_chooser
from harness_baseline.classification import classify, learn_classifier
from harness_baseline.description import BaselineOptions
from harness_baseline.example import checked_examples
from harness_baseline.hashing import hash_ngrams, normalise
from harness_baseline.span import extract_spans, learn_span_extractor
from harness_baseline.state import FitState
from harness_baseline.tagging import learn_tagger, tag

__all__ = ["CharNgram"]

_CHUNK = 1024
"""Texts embedded at a time, which bounds the memory."""


class CharNgram:
    """Embeds by counting n-grams; learns each head with the module named after it."""

    def __init__(self, options: BaselineOptions) -> None:
        self._dimension = options.dimension
        self._ngrams = options.ngrams

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Return the signed hashed counts of all n-grams of 1 to `ngrams` characters as unit rows.

        An n-gram counts by its length, because long ones are rarer and say more; the square root of each
        coordinate keeps frequent ones from drowning the rest. Coordinates that cancel out to a zero vector
        give the first unit vector.
        """
        parts = [
            self._embed_chunk([normalise(text) for text in texts[begin : begin + _CHUNK]])
            for begin in range(0, len(texts), _CHUNK)
        ]
        return np.concatenate([np.zeros((0, self._dimension), dtype=np.float32), *parts])

    def _embed_chunk(self, texts: Sequence[str]) -> FloatArray:
        grams = hash_ngrams(texts, range(1, self._ngrams + 1))
        cells = grams.rows * self._dimension + (grams.values % np.uint64(self._dimension)).astype(np.int64)
        signs = np.where(grams.values >> np.uint64(63), 1.0, -1.0)
        counts = np.bincount(cells, weights=signs * grams.lengths, minlength=len(texts) * self._dimension)
        vectors = counts.reshape(len(texts), self._dimension)
        vectors = np.sign(vectors) * np.sqrt(np.abs(vectors))
        lengths = np.linalg.norm(vectors, axis=1)
        vectors[lengths == 0, 0] = 1.0
        unit = vectors / np.where(lengths == 0, 1.0, lengths)[:, None]
        return unit.astype(np.float32)

    def learn(
        self,
        train: Sequence[Any],
        spec: HeadSpec,
        settings: TrainingSettings,
        seed: int,
        start: FitState | None,
    ) -> FitState:
        """Return the fitted head; of the settings it uses `epochs` and `max_steps`.

        The dual encoder has nothing to learn: its vectors are those of `embed`.
        """
        match spec.head:
            case Head.CLASSIFICATION:
                pairs = checked_examples(train, spec, ClassificationExample)
                return learn_classifier(pairs, spec, settings, seed, ngrams=self._ngrams, start=start)
            case Head.MULTIPLE_CHOICE:
                items = checked_examples(train, spec, MultipleChoiceExample)
                return learn_chooser(items, settings, seed, ngrams=self._ngrams, start=start)
            case Head.TAGGING:
                return learn_tagger(checked_examples(train, spec, TaggedSentence), settings, seed, start)
            case Head.SPAN_EXTRACTION:
                return learn_span_extractor(checked_examples(train, spec, SpanExample), settings, seed, start)
            case _:
                checked_examples(train, spec, RetrievalPair)
                return FitState(ref="char-ngram", head=spec.head, seed=seed)

    def classify(self, state: FitState, inputs: Sequence[TextInput]) -> FloatArray:
        """Return the logits of the state's labels."""
        return classify(state, inputs, self._ngrams)

    def choose(self, state: FitState, items: Sequence[Choice]) -> list[tuple[float, ...]]:
        """Return one score per choice."""
        return choose(state, items, self._ngrams)

    def tag(self, state: FitState, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the likeliest tag of every token."""
        return tag(state, sentences)

    def extract_spans(self, state: FitState, items: Sequence[SpanQuestion]) -> list[SpanAnswer]:
        """Return the best candidate span of every context."""
        return extract_spans(state, items)
