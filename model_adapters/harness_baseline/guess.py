"""Baselines that read no text: the answer that is right most often in training, and seeded uniform guesses."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

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
from harness_baseline.fit import FitState, checked_examples, label_names
from harness_baseline.text import no_span, split_words

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


_Hashes = npt.NDArray[np.uint64]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_LONGEST_SPAN = 5
"""Words of the longest guessed span; most answers of SQuAD are that short."""


class Guess:
    """Draws from a hash of (option seed, fit seed, item): two items with the same text get the same guess.

    Of the training data it uses only the set of labels and tags.
    """

    def __init__(self, options: BaselineOptions) -> None:
        self._dimension = options.dimension
        self._seed = options.seed

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Return unit vectors with independent, uniformly drawn coordinates."""
        vectors = np.empty((len(texts), self._dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            drawn = self._draw(hash_text(self._seed, "embed", text), self._dimension) * 2 - 1
            vectors[row] = drawn / np.linalg.norm(drawn)
        return vectors

    def learn(
        self,
        train: Sequence[Any],
        spec: HeadSpec,
        settings: TrainingSettings,
        seed: int,
        start: FitState | None,
    ) -> FitState:
        """Return the labels or tags of the training data; `settings` and `start` change nothing."""
        labels = label_names(checked_examples(train, spec), spec)
        return FitState(ref="random", head=spec.head, labels=labels, seed=seed)

    def classify(self, state: FitState, inputs: Sequence[TextInput]) -> FloatArray:
        """Return independent uniform scores in [0, 1)."""
        scores = np.empty((len(inputs), len(state.labels)), dtype=np.float32)
        for row, item in enumerate(inputs):
            key = hash_text(
                self._seed, state.seed, "classify", item.text, item.text_pair is None, item.text_pair or ""
            )
            scores[row] = self._draw(key, len(state.labels))
        return scores

    def choose(self, state: FitState, items: Sequence[Choice]) -> list[tuple[float, ...]]:
        """Return independent uniform scores in [0, 1)."""
        answers: list[tuple[float, ...]] = []
        for item in items:
            key = hash_text(self._seed, state.seed, "choose", item.context, *item.choices)
            answers.append(tuple(float(value) for value in self._draw(key, len(item.choices))))
        return answers

    def tag(self, state: FitState, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return tags drawn uniformly from those that the training data has."""
        answers: list[list[str]] = []
        for sentence in sentences:
            drawn = self._draw(hash_text(self._seed, state.seed, "tag", *sentence), len(sentence))
            answers.append([state.labels[int(value * len(state.labels))] for value in drawn])
        return answers

    def extract_spans(self, state: FitState, items: Sequence[SpanQuestion]) -> list[SpanAnswer]:
        """Return spans with a uniformly drawn first word and a uniformly drawn length of 1 to 5 words."""
        return [self._guess_span(state, item) for item in items]

    def _guess_span(self, state: FitState, item: SpanQuestion) -> SpanAnswer:
        words = split_words(item.context)
        if not words:
            return no_span()
        key = hash_text(self._seed, state.seed, "span", item.question, item.context)
        where, length, score = self._draw(key, 3)
        first = int(where * len(words))
        last = min(first + int(length * _LONGEST_SPAN), len(words) - 1)
        start, end = words[first].start, words[last].end
        return SpanAnswer(text=item.context[start:end], start=start, end=end, score=float(score))

    @staticmethod
    def _draw(key: int, count: int) -> npt.NDArray[np.float64]:
        """Return `count` numbers in [0, 1) that the key determines."""
        keys, counters = np.full(count, key, dtype=np.uint64), np.arange(count, dtype=np.uint64)
        drawn = mix(mix(keys) * _MULTIPLIER ^ counters)
        return (drawn >> np.uint64(11)).astype(np.float64) * 2.0**-53


def hash_text(*items: str | int) -> int:
    """Return a 64-bit hash of a sequence of texts and numbers; ``("ab", "c")`` and ``("a", "bc")`` differ.

    Python's own ``hash`` differs between processes; this one depends on nothing but its input.
    """
    digest = hashlib.blake2b(digest_size=8)
    for item in items:
        data = str(item).encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return int.from_bytes(digest.digest(), "little")


def mix(values: _Hashes) -> _Hashes:
    """Return the finaliser of SplitMix64 (Steele, Lea and Flood, 2014): close inputs become unrelated outputs."""
    values = values + _MULTIPLIER
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
