from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import accuracy_score

from harness.metrics.classification import accuracy
from harness.metrics.metric import MetricContext

CONTEXT = MetricContext(language="en")
LABELS = st.sampled_from(["contradiction", "entailment", "neutral"])


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=60))
def test_equals_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    predictions, references = zip(*pairs, strict=True)
    outputs = [{"label": label, "scores": [0.2, 0.3, 0.5]} for label in predictions]
    result = accuracy(outputs, references, CONTEXT)
    assert result.value == pytest.approx(accuracy_score(references, predictions))
    assert result.items is not None
    assert result.items.tolist() == [float(left == right) for left, right in pairs]


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=20), st.randoms())
def test_does_not_depend_on_the_order(pairs: list[tuple[str, str]], random: Any) -> None:
    shuffled = random.sample(pairs, len(pairs))
    values = [
        accuracy([p for p, _ in order], [g for _, g in order], CONTEXT).value for order in (pairs, shuffled)
    ]
    assert values[0] == pytest.approx(values[1])
    assert accuracy([g for _, g in pairs], [g for _, g in pairs], CONTEXT).value == 1.0


def test_bare_labels_and_integers() -> None:
    assert accuracy(["a", "b", "a", "a"], ["a", "a", "a", "b"], CONTEXT).value == 0.5
    result = accuracy([{"label": 1}, {"label": 0}, 1], [1, 1, 1], CONTEXT)
    assert result.items is not None
    np.testing.assert_array_equal(result.items, [1.0, 0.0, 1.0])


def test_no_answer_is_wrong() -> None:
    assert accuracy([{"label": None}, "a"], ["a", "a"], CONTEXT).value == 0.5


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        (["a"], ["a", "b"], "one prediction for each of the 2 references, found 1"),
        ([], [], "at least one item"),
        (["a", "1"], ["a", 1], r"Item 1: .* found '1' \(str\)"),
        ([True], [1], r"Item 0: .* found True \(bool\)"),
        ([{"scores": [1.0]}], ["a"], "Item 0: expected a prediction with the key 'label', found 'scores'"),
    ],
)
def test_rejects_what_does_not_fit(predictions: list[Any], references: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        accuracy(predictions, references, CONTEXT)
