"""The char-ngram classifier: a multinomial logit over overlap buckets, new words and character n-grams.

The features are close to those of the lexicalised classifier of Bowman et al. (2015), "A large annotated
corpus for learning natural language inference", section 3.2. Overlap buckets carry over to languages the
model was not trained on; words and n-grams carry over as far as the vocabularies share strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from harness import ClassificationExample, FloatArray, Head, HeadSpec, TextInput, TrainingSettings
from harness_baseline.example import label_names, text_input_of
from harness_baseline.hashing import combine, hash_ngrams, hash_text, normalise
from harness_baseline.overlap import content_words, overlap_features
from harness_baseline.regression import BUCKETS, Schedule, SparseRows, fit_multinomial, score
from harness_baseline.state import FitState

__all__ = ["Features", "bucket", "classify", "learn_classifier", "ngram_features"]

_NGRAM_MASS = 3.0
"""Squared length of the block of n-gram features, next to blocks of features with the value 1."""

Features = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]


def learn_classifier(
    examples: Sequence[ClassificationExample],
    spec: HeadSpec,
    settings: TrainingSettings,
    seed: int,
    *,
    ngrams: int,
    start: FitState | None,
) -> FitState:
    """Return the fitted weights; training continues from `start` where it has the same head and labels."""
    labels = label_names(examples, spec)
    index = {label: position for position, label in enumerate(labels)}
    classes = np.array([index[example.label or ""] for example in examples], dtype=np.int64)
    rows = SparseRows.of_lists([_features(text_input_of(example, spec), ngrams) for example in examples])
    weights = np.zeros((BUCKETS, len(labels)), dtype=np.float32)
    if start is not None and start.head is Head.CLASSIFICATION and start.labels == labels:
        weights = start.arrays["weights"].copy()
    schedule = Schedule.of_settings(settings, seed, batch=256, rate=0.03, decay=0.3)
    fit_multinomial(rows, classes, weights, schedule)
    return FitState(
        ref="char-ngram", head=Head.CLASSIFICATION, labels=labels, seed=seed, arrays={"weights": weights}
    )


def classify(state: FitState, inputs: Sequence[TextInput], ngrams: int) -> FloatArray:
    """Return the logits of the state's labels, shape (inputs, labels)."""
    return score(SparseRows.of_lists([_features(item, ngrams) for item in inputs]), state.arrays["weights"])


@lru_cache(maxsize=1 << 18)
def bucket(*parts: str | int) -> int:
    """Return the bucket of a named feature."""
    return hash_text(*parts) % BUCKETS


def ngram_features(text: str, ngrams: int, block: int) -> Features:
    """Return the distinct n-grams of 2 to `ngrams` characters (of 1 where that is all), of constant mass."""
    grams = np.unique(hash_ngrams([normalise(text)], range(min(2, ngrams), ngrams + 1)).values)
    ids = (combine(grams, block) % np.uint64(BUCKETS)).astype(np.int64)
    return ids, np.full(len(ids), (_NGRAM_MASS / max(len(ids), 1)) ** 0.5, dtype=np.float32)


def _features(item: TextInput, ngrams: int) -> Features:
    if item.text_pair is None:
        named = [bucket("word", word) for word in sorted(set(content_words(item.text)))]
        ids, values = ngram_features(item.text, ngrams, 1)
    else:
        new = set(content_words(item.text_pair)) - set(content_words(item.text))
        named = [bucket("new", word) for word in sorted(new)]
        named += [bucket("overlap", name) for name in overlap_features(item.text, item.text_pair)]
        ids, values = ngram_features(item.text_pair, ngrams, 2)
    named.append(bucket("bias"))
    return (
        np.concatenate([np.array(named, dtype=np.int64), ids]),
        np.concatenate([np.ones(len(named), dtype=np.float32), values]),
    )
