"""The majority baseline: the answer that is right most often in the training data, whatever the item."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.models import (
    Choice,
    FloatArray,
    Head,
    HeadSpec,
    SpanAnswer,
    SpanQuestion,
    TextInput,
    TrainingSettings,
)
from harness_baseline.description import BaselineOptions
from harness_baseline.example import checked_examples, label_names
from harness_baseline.state import FitState
from harness_baseline.text import no_span

_SENTENCE = re.compile(r"\S[^.!?\u061f\u06d4\u0964\u0965\u1362\u3002\uff01\uff1f\n]*")


class Majority:
    """Gives the relative frequencies of the training labels as scores.

    A tag is the most frequent one over all tokens, a choice the most frequent position of the right choice, a
    span the first sentence of the context without its final mark, a vector the same constant for every text.
    Of equally frequent labels the first one counts. Earlier training stages are ignored.
    """

    def __init__(self, options: BaselineOptions) -> None:
        self._dimension = options.dimension

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Return the same unit vector for every text."""
        return np.full((len(texts), self._dimension), self._dimension**-0.5, dtype=np.float32)

    def learn(
        self,
        train: Sequence[Any],
        spec: HeadSpec,
        settings: TrainingSettings,
        seed: int,
        start: FitState | None,
    ) -> FitState:
        """Return the label counts; `settings` and `start` change nothing."""
        examples = checked_examples(train, spec)
        labels = label_names(examples, spec)
        counts: list[int] = []
        match spec.head:
            case Head.CLASSIFICATION:
                frequencies = Counter(example.label for example in examples)
                counts = [frequencies[label] for label in labels]
            case Head.TAGGING:
                tags = Counter(tag for sentence in examples for tag in sentence.tags)
                counts = [tags[tag] for tag in labels]
            case Head.MULTIPLE_CHOICE:
                right = Counter(item.label for item in examples)
                counts = [right[index] for index in range(max(len(item.choices) for item in examples))]
        shares = (np.array(counts, dtype=np.float64) / max(sum(counts), 1)).astype(np.float32)
        return FitState(
            ref="majority", head=spec.head, labels=labels, seed=seed, shares=tuple(shares.tolist())
        )

    def classify(self, state: FitState, inputs: Sequence[TextInput]) -> FloatArray:
        """Return the shares of the labels, the same in every row."""
        return np.tile(np.array(state.shares, dtype=np.float32), (len(inputs), 1))

    def choose(self, state: FitState, items: Sequence[Choice]) -> list[tuple[float, ...]]:
        """Return the shares of the positions; a position that no training item had scores 0."""
        return [(state.shares + (0.0,) * len(item.choices))[: len(item.choices)] for item in items]

    def tag(self, state: FitState, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the most frequent tag for every token."""
        most_frequent = state.labels[state.shares.index(max(state.shares))] if state.labels else ""
        return [[most_frequent] * len(sentence) for sentence in sentences]

    def extract_spans(self, state: FitState, items: Sequence[SpanQuestion]) -> list[SpanAnswer]:
        """Return the first sentence of every context, without the mark that ends it."""
        return [_first_sentence(item.context) for item in items]


def _first_sentence(context: str) -> SpanAnswer:
    match = _SENTENCE.search(context)
    if match is None:
        return no_span()
    text = match.group().rstrip()
    return SpanAnswer(text=text, start=match.start(), end=match.start() + len(text), score=1.0)
