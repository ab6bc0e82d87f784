"""The char-ngram chooser: a conditional logit over the choices of an item.

Features: the words and character n-grams of a choice, and the buckets of its overlap with the context and
with the other choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from harness import Choice, Head, MultipleChoiceExample, TrainingSettings
from harness_baseline.classification import Features, bucket, ngram_features
from harness_baseline.example import choice_of
from harness_baseline.overlap import content_words, overlap_features, size_bucket
from harness_baseline.regression import BUCKETS, Schedule, SparseRows, fit_conditional, group_starts, score
from harness_baseline.state import FitState

__all__ = ["choose", "learn_chooser"]


def learn_chooser(
    examples: Sequence[MultipleChoiceExample],
    settings: TrainingSettings,
    seed: int,
    *,
    ngrams: int,
    start: FitState | None,
) -> FitState:
    """Return the fitted weights; training continues from an earlier multiple-choice stage."""
    weights = np.zeros((BUCKETS, 1), dtype=np.float32)
    if start is not None and start.head is Head.MULTIPLE_CHOICE:
        weights = start.arrays["weights"].copy()
    fit_conditional(
        _rows([choice_of(example) for example in examples], ngrams),
        group_starts([len(example.choices) for example in examples]),
        np.array([example.label for example in examples], dtype=np.int64),
        weights,
        Schedule.of_settings(settings, seed, batch=64, rate=0.03, decay=0.1),
    )
    return FitState(ref="char-ngram", head=Head.MULTIPLE_CHOICE, seed=seed, arrays={"weights": weights})


def choose(state: FitState, items: Sequence[Choice], ngrams: int) -> list[tuple[float, ...]]:
    """Return the scores of the choices of every item."""
    scores = score(_rows(items, ngrams), state.arrays["weights"])[:, 0].tolist()
    starts = group_starts([len(item.choices) for item in items]).tolist()
    return [tuple(scores[begin:end]) for begin, end in pairwise(starts)]


def _rows(items: Sequence[Choice], ngrams: int) -> SparseRows:
    return SparseRows.of_lists(
        [_features(item, index, ngrams) for item in items for index in range(len(item.choices))]
    )


def _features(item: Choice, index: int, ngrams: int) -> Features:
    choice = item.choices[index]
    words = content_words(choice)
    others = [len(content_words(other)) for other in item.choices[:index] + item.choices[index + 1 :]]
    longest = len(words) > max(others, default=0)
    named = [
        bucket("choice bias"),
        bucket("choice length", size_bucket(len(words))),
        bucket("longest", longest),
    ]
    named += [bucket("choice word", word) for word in sorted(set(words))]
    named += [bucket("choice overlap", name) for name in overlap_features(item.context, choice)]
    ids, values = ngram_features(choice, ngrams, 3)
    return (
        np.concatenate([np.array(named, dtype=np.int64), ids]),
        np.concatenate([np.ones(len(named), dtype=np.float32), values]),
    )
