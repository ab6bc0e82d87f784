"""The char-ngram baseline: hashed character n-grams as vectors, and linear models of scikit-learn for every head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from harness.data import ClassificationExample, MultipleChoiceExample, TaggedSentence
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
from harness_baseline.example import checked_examples, label_names, text_input_of
from harness_baseline.linear import COLUMNS, Training, fit_linear, hash_features, score
from harness_baseline.span import extract_span, learn_spans
from harness_baseline.state import FitState, Weights
from harness_baseline.text import content_words, fold, normalise, overlap_features, shape_of, size_bucket

_CHUNK = 1024
"""Texts embedded at a time, which bounds the memory."""
_TOKENS = 1 << 16
"""Tokens tagged at a time."""
_NGRAM_WEIGHT = 3.0**0.5
"""Length of the vector of n-grams, next to features with the value 1."""


class CharNgram:
    """Embeds by counting n-grams; learns a linear model for every head but the dual encoder, which it leaves as is.

    Classification: the words and n-grams of the text, or, of a pair, those of the second text with the buckets of its
    overlap with the first; close to the lexicalised classifier of Bowman et al. (2015), "A large annotated corpus for
    learning natural language inference", section 3.2. Overlap carries over to languages without training data, words
    and n-grams as far as the vocabularies share strings. Multiple choice: the same for each choice and its context.
    """

    def __init__(self, options: BaselineOptions) -> None:
        self._dimension = options.dimension
        self._ngrams = options.ngrams

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Return the signed hashed counts of all n-grams of 1 to `ngrams` characters as unit rows.

        An n-gram counts by its length, because long ones are rarer and say more; the square root of each
        coordinate keeps frequent ones from drowning the rest. Coordinates that cancel out to a zero vector
        give the first unit vector.
        """
        vectors = np.empty((len(texts), self._dimension), dtype=np.float32)
        for begin in range(0, len(texts), _CHUNK):
            chunk = texts[begin : begin + _CHUNK]
            counts = sum(
                length * _count_ngrams(chunk, (length, length), self._dimension)
                for length in range(1, self._ngrams + 1)
            ).toarray()
            rows = np.sign(counts) * np.sqrt(np.abs(counts))
            rows[~rows.any(axis=1), 0] = 1.0
            vectors[begin : begin + _CHUNK] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return vectors

    def learn(
        self,
        train: Sequence[Any],
        spec: HeadSpec,
        settings: TrainingSettings,
        seed: int,
        start: FitState | None,
    ) -> FitState:
        """Return the fitted head; training continues from `start` where it has the same head and labels."""
        examples = checked_examples(train, spec)
        labels = label_names(examples, spec)
        earlier = start.linear if start and (start.head, start.labels) == (spec.head, labels) else None
        training = Training(settings=settings, seed=seed, start=earlier)
        weights: Weights | None = None
        match spec.head:
            case Head.CLASSIFICATION:
                weights = self._learn_labels(examples, spec, labels, training)
            case Head.MULTIPLE_CHOICE:
                weights = self._learn_choices(examples, training)
            case Head.TAGGING:
                weights = _learn_tags(examples, labels, training)
            case Head.SPAN_EXTRACTION:
                weights = learn_spans(examples, training)
        return FitState.of(weights, ref="char-ngram", head=spec.head, labels=labels, seed=seed)

    def classify(self, state: FitState, inputs: Sequence[TextInput]) -> FloatArray:
        """Return the logits of the state's labels."""
        return score(self._text_rows(inputs), _weights(state))

    def choose(self, state: FitState, items: Sequence[Choice]) -> list[tuple[float, ...]]:
        """Return one score per choice."""
        scores = score(self._choice_rows(items), _weights(state))[:, 0].tolist()
        ends = accumulate((len(item.choices) for item in items), initial=0)
        return [tuple(scores[begin:end]) for begin, end in pairwise(ends)]

    def tag(self, state: FitState, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the likeliest tag of every token."""
        names = list(token_features(sentences))
        best: list[int] = []
        for begin in range(0, len(names), _TOKENS):
            best += (
                score(hash_features(names[begin : begin + _TOKENS]), _weights(state)).argmax(axis=1).tolist()
            )
        tags = iter(best)
        return [[state.labels[next(tags)] for _ in sentence] for sentence in sentences]

    def extract_spans(self, state: FitState, items: Sequence[SpanQuestion]) -> list[SpanAnswer]:
        """Return the best candidate span of every context."""
        return [extract_span(item, _weights(state)) for item in items]

    def _learn_labels(
        self,
        examples: Sequence[ClassificationExample],
        spec: HeadSpec,
        labels: Sequence[str],
        training: Training,
    ) -> Weights:
        index = {label: position for position, label in enumerate(labels)}
        rows = self._text_rows([text_input_of(example, spec) for example in examples])
        return fit_linear(rows, [index[example.label or ""] for example in examples], len(labels), training)

    def _learn_choices(self, examples: Sequence[MultipleChoiceExample], training: Training) -> Weights:
        rows = self._choice_rows([Choice(context=item.context, choices=item.choices) for item in examples])
        right = [int(index == item.label) for item in examples for index in range(len(item.choices))]
        return fit_linear(rows, right, 1, training)

    def _text_rows(self, items: Sequence[TextInput]) -> Any:
        return self._rows(
            [_text_features(item) for item in items], [item.text_pair or item.text for item in items]
        )

    def _choice_rows(self, items: Sequence[Choice]) -> Any:
        names = [_choice_features(item, index) for item in items for index in range(len(item.choices))]
        return self._rows(names, [choice for item in items for choice in item.choices])

    def _rows(self, names: Sequence[Sequence[str]], texts: Sequence[str]) -> Any:
        """Return the rows of named features and the n-grams of texts, of 2 characters and more."""
        if not texts:
            return hash_features([])
        lengths = (min(2, self._ngrams), self._ngrams)
        return hash_features(names) + _NGRAM_WEIGHT * _count_ngrams(
            texts, lengths, COLUMNS, binary=True, norm="l2"
        )


def _weights(state: FitState) -> Weights:
    assert state.linear is not None
    return state.linear


def _count_ngrams(
    texts: Sequence[str],
    lengths: tuple[int, int],
    columns: int,
    *,
    binary: bool = False,
    norm: str | None = None,
) -> Any:
    return HashingVectorizer(
        analyzer="char",
        preprocessor=normalise,
        ngram_range=lengths,
        n_features=columns,
        binary=binary,
        norm=norm,
        alternate_sign=not binary,
        dtype=np.float32,
    ).transform(texts)


def _text_features(item: TextInput) -> list[str]:
    if item.text_pair is None:
        return [f"word {word}" for word in sorted(set(content_words(item.text)))]
    new = set(content_words(item.text_pair)) - set(content_words(item.text))
    return [f"new {word}" for word in sorted(new)] + overlap_features(item.text, item.text_pair)


def _choice_features(item: Choice, index: int) -> list[str]:
    words = content_words(item.choices[index])
    lengths = [len(content_words(choice)) for choice in item.choices[:index] + item.choices[index + 1 :]]
    names = [f"length {size_bucket(len(words))}", f"longest {len(words) > max(lengths, default=0)}"]
    names += [f"word {word}" for word in sorted(set(words))]
    return names + overlap_features(item.context, item.choices[index])


def _learn_tags(
    examples: Sequence[TaggedSentence], labels: Sequence[str], training: Training
) -> Weights | None:
    index = {tag: position for position, tag in enumerate(labels)}
    targets = [index[tag] for example in examples for tag in example.tags or ()]
    if not targets:
        return None
    rows = hash_features(token_features([example.tokens for example in examples]))
    return fit_linear(rows, targets, len(labels), training)


_AFFIX = 4


def token_features(sentences: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Yield the names of the features of every token of every sentence."""
    for sentence in sentences:
        words = [_OUTSIDE, _OUTSIDE, *map(_word_features, sentence), _OUTSIDE, _OUTSIDE]
        for index in range(2, len(words) - 2):
            (before2, _), (before, _), (word, _), (after, _), (after2, _) = words[index - 2 : index + 3]
            yield words[index][1] + [
                f"f-1={before[0]}",
                f"f+1={after[0]}",
                f"f-2={before2[0]}",
                f"f+2={after2[0]}",
                f"e-1={before[2]}",
                f"e+1={after[2]}",
                f"s-1,0={before[1]} {word[1]}",
                f"s0,1={word[1]} {after[1]}",
                f"f-1,0={before[0]} {word[0]}",
                f"f0,1={word[0]} {after[0]}",
                f"f-1,1={before[0]} {after[0]}",
                f"e-1,0={before[3]} {word[3]}",
            ]


_Word = tuple[tuple[str, str, str, str], list[str]]
_OUTSIDE: _Word = (("\n", "\n", "\n", "\n"), [])


@lru_cache(maxsize=1 << 16)
def _word_features(form: str) -> _Word:
    """Return form, shape and the last three and two characters, and the names of the features of the word itself."""
    folded, shape = fold(form), shape_of(form)
    names = [f"f={folded}", f"s={shape}"]
    for length in range(1, _AFFIX + 1):
        names += [f"p{length}={folded[:length]}", f"e{length}={folded[-length:]}"]
    return (folded, shape, folded[-3:], folded[-2:]), names
