from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.models.capabilities import Head, TextInput
from harness.testing.examples import SENTENCES, head_spec, training_examples
from harness_baseline.model import Baseline

ITEMS = [TextInput(text=f"item {number}", text_pair="b") for number in range(3000)]


def test_guesses_are_uniform_over_the_labels(fit: Any) -> None:
    head = Head.CLASSIFICATION
    model = fit("random", training_examples(head), head_spec(head))
    counts = Counter(model.classify(ITEMS, ["no", "yes"]).argmax(axis=1).tolist())
    assert abs(counts[0] - 1500) < 150


def test_guesses_depend_on_the_seed_of_the_fit_and_of_the_options(
    fit: Any, open_baseline: Callable[..., Baseline]
) -> None:
    head = Head.CLASSIFICATION
    train, spec = training_examples(head), head_spec(head)
    one = fit("random", train, spec, seed=1).classify(ITEMS, spec.labels)
    np.testing.assert_array_equal(one, fit("random", train, spec, seed=1).classify(ITEMS, spec.labels))
    assert not np.allclose(one, fit("random", train, spec, seed=2).classify(ITEMS, spec.labels))
    other = fit(open_baseline("random", seed="5"), train, spec, seed=1).classify(ITEMS, spec.labels)
    assert not np.allclose(one, other)


def test_a_missing_pair_is_not_an_empty_pair(fit: Any) -> None:
    head = Head.CLASSIFICATION
    model = fit("random", training_examples(head), head_spec(head))
    scores = model.classify([TextInput(text="a"), TextInput(text="a", text_pair="")], ["no", "yes"])
    assert not np.allclose(scores[0], scores[1])


def test_vectors_of_different_texts_are_nearly_orthogonal(open_baseline: Callable[..., Baseline]) -> None:
    vectors = open_baseline("random").embed(SENTENCES, side="query")
    products = vectors @ vectors.T - np.eye(len(SENTENCES))
    assert np.abs(products).max() < 0.1
