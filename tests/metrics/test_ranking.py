"""Accuracies by length and by pointwise mutual information, against lm-eval's formulas on the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from harness.metrics.metric import MetricContext, MetricFunction
from harness.metrics.ranking import accuracy_byte, accuracy_char, accuracy_pmi, accuracy_token, mrr

CONTEXT = MetricContext(language="sw", labels=("x", "y", "z"))
VIEWS = {
    "characters": accuracy_char,
    "bytes": accuracy_byte,
    "tokens": accuracy_token,
    "unconditional": accuracy_pmi,
}


def _ranked(sums: list[float], **numbers: list[float]) -> dict[str, Any]:
    label = CONTEXT.labels[int(np.argmax(sums))]
    usual = {"tokens": [1, 1, 1], "characters": [1, 1, 1], "bytes": [1, 1, 1], "greedy": [False] * 3}
    return {"label": label, "scores": sums, **usual, **numbers}


def test_each_view_ranks_by_its_own_numbers() -> None:
    prediction = _ranked(
        [-6.0, -8.0, -12.0],
        tokens=[1, 4, 3],  # -6, -2, -4
        characters=[4, 5, 10],  # -1.5, -1.6, -1.2
        bytes=[12, 10, 10],  # -0.5, -0.8, -1.2
        unconditional=[-7.0, -8.5, -16.0],  # 1, 0.5, 4
    )
    best = {"tokens": "y", "characters": "z", "bytes": "x", "unconditional": "z"}
    for key, metric in VIEWS.items():
        for label in CONTEXT.labels:
            result = metric([prediction], [label], CONTEXT)
            assert result.value == float(label == best[key])
            assert result.items is not None
            assert result.items.tolist() == [result.value]


numbers = st.lists(st.floats(-80, -1), min_size=3, max_size=3)
lengths = st.lists(st.integers(1, 60), min_size=3, max_size=3)


@given(sums=numbers, lengths=lengths, alone=numbers, gold=st.integers(0, 2))
def test_they_are_the_formulas_of_lm_eval(
    sums: list[float], lengths: list[int], alone: list[float], gold: int
) -> None:
    """`acc_norm`, `acc_bytes` and `acc_mutual_info` in lm-eval 0.4 ``api/task.py``, process_results."""
    prediction = _ranked(sums, characters=list(map(float, lengths)), unconditional=alone)
    reference = CONTEXT.labels[gold]
    normalised = 1.0 if np.argmax(np.array(sums) / np.array(lengths, float)) == gold else 0.0
    mutual = 1.0 if np.argmax([one - two for one, two in zip(sums, alone, strict=True)]) == gold else 0.0
    assert accuracy_char([prediction], [reference], CONTEXT).value == normalised
    assert accuracy_pmi([prediction], [reference], CONTEXT).value == mutual


HEAD = {"label": "x", "scores": [0.9, 0.1, 0.0]}


@pytest.mark.parametrize(
    ("prediction", "metric", "message"),
    [
        (
            HEAD,
            accuracy_byte,
            r"Item 1: expected a ranked prediction with 'tokens' \(from the method 'rank'\)",
        ),
        ({"label": "x", "raw": "x"}, accuracy_char, r"with 'scores' .*, found 'label', 'raw'\."),
        ("x", accuracy_token, r"with 'scores' .*, found 'x'\."),
        (
            _ranked([-1.0, -2.0, -3.0]),
            accuracy_pmi,
            r"with 'unconditional' \(from a prompt with 'unconditional'\)",
        ),
        (_ranked([-1.0, -2.0, -3.0], tokens=[1, 0, 2]), accuracy_token, r"Item 1: expected lengths above 0"),
        (_ranked([-1.0, -2.0, -3.0], tokens=[1, 2]), accuracy_token, r"for each of the 3 choices, found 2"),
        ({**_ranked([-2.0, -1.0, -3.0]), "label": "x"}, accuracy_byte, r"'x' is not that of the largest sum"),
        ({**_ranked([-2.0, -1.0, -3.0]), "label": None}, accuracy_byte, r"expected a ranked prediction"),
    ],
)
def test_predictions_without_these_numbers_are_rejected(
    prediction: Any, metric: MetricFunction, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        metric([_ranked([-1.0, -2.0, -3.0], unconditional=[0, 0, 0]), prediction], ["x", "x"], CONTEXT)


def test_the_first_of_equals_wins() -> None:
    tied = _ranked([-2.0, -4.0, -6.0], characters=[1, 2, 3])
    assert accuracy_char([tied], ["x"], CONTEXT).value == 1.0


def test_the_reciprocal_rank_of_the_right_form() -> None:
    def formed(*scores: float | None) -> dict[str, Any]:
        return {"label": "a", "forms": ["a", "b", "c"][: len(scores)], "scores": list(scores)}

    found = mrr(
        [formed(-1.0, -2.0, -3.0), formed(-2.0, -1.0, -3.0), formed(-2.0, -2.0, -3.0), formed(None, -1.0)],
        ["a"] * 4,
        CONTEXT,
    )
    assert found.items is not None
    assert found.items.tolist() == [1.0, 0.5, 0.5, 0.0]
    assert found.value == 0.5
    assert mrr([formed(-3.0, None, -1.0)], ["a"], CONTEXT).value == 0.5
    for broken in (
        "a",
        {"label": "a"},
        {"forms": ["b"], "scores": [-1.0]},
        {"forms": ["a", "b"], "scores": [-1.0]},
    ):
        with pytest.raises(ValueError, match="Item 0: expected"):
            mrr([broken], ["a"], CONTEXT)
