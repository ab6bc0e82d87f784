from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import average_precision_score

from harness.metrics.metric import MetricContext
from harness.metrics.ranking import average_precision, map_at_20, mrr_at_20, reciprocal_rank, top1_accuracy

CONTEXT = MetricContext(language="en")
IDS = [f"Q{number}" for number in range(30)]


def test_top1_accuracy() -> None:
    outputs = [
        {"candidate": "a", "similarity": 0.9},
        {"candidate": "c", "similarity": 0.2},
        "c",
        {"candidate": None},
    ]
    result = top1_accuracy(outputs, ["a", "b", "c", "d"], CONTEXT)
    assert result.items is not None
    np.testing.assert_array_equal(result.items, [1.0, 0.0, 1.0, 0.0])
    assert result.value == 0.5


@pytest.mark.parametrize(
    ("candidates", "targets", "expected"),
    [
        (["x", "a", "b"], ["a", "b"], (1 / 2 + 2 / 3) / 2),
        (["a", "a", "b"], ["a", "b"], (1 + 2 / 3) / 2),  # the repeat keeps rank 2 and counts once
        (["a"], ["a", "b", "c", "d"], 1 / 4),
        ([], ["a"], 0.0),
        ([*IDS[:20], "a"], ["a"], 0.0),
        ([*IDS[:19], "a"], ["a"], 1 / 20),
        (IDS[:20], IDS, 1.0),  # more targets than the cut-off
    ],
)
def test_average_precision(candidates: list[str], targets: list[str], expected: float) -> None:
    assert average_precision(candidates, targets) == pytest.approx(expected)


@given(st.permutations(IDS[:15]), st.sets(st.sampled_from(IDS[:15]), min_size=1))
def test_equals_scikit_learn_where_the_whole_ranking_counts(ranking: list[str], targets: set[str]) -> None:
    truth = np.array([candidate in targets for candidate in ranking])
    expected = average_precision_score(truth, -np.arange(len(ranking)))
    assert average_precision(ranking, targets) == pytest.approx(expected)


@given(st.lists(st.sampled_from(IDS), max_size=40), st.lists(st.sampled_from(IDS), min_size=1, max_size=25))
def test_bounds_and_repeats(candidates: list[str], targets: list[str]) -> None:
    precision, rank = average_precision(candidates, targets), reciprocal_rank(candidates, targets)
    assert 0.0 <= precision <= 1.0
    assert 0.0 <= rank <= 1.0
    assert average_precision(list(dict.fromkeys(targets)), targets) == pytest.approx(1.0)
    assert average_precision(candidates[:20], targets) == precision


@given(st.lists(st.sampled_from(IDS), max_size=40), st.sampled_from(IDS))
def test_with_one_target_both_are_the_reciprocal_rank(candidates: list[str], target: str) -> None:
    position = candidates[:20].index(target) + 1 if target in candidates[:20] else None
    expected = 1 / position if position else 0.0
    assert average_precision(candidates, [target]) == reciprocal_rank(candidates, [target]) == expected


@given(
    st.lists(st.tuples(st.lists(st.sampled_from(IDS)), st.sampled_from(IDS)), min_size=1, max_size=6),
    st.randoms(),
)
def test_does_not_depend_on_the_order(pairs: list[tuple[list[str], str]], random: Any) -> None:
    shuffled = random.sample(pairs, len(pairs))
    for metric in (map_at_20, mrr_at_20):
        values = [metric([p for p, _ in o], [[g] for _, g in o], CONTEXT).value for o in (pairs, shuffled)]
        assert values[0] == pytest.approx(values[1])


def test_means_over_queries() -> None:
    predictions = [["a", "b"], {"candidates": ["x", "b", "a"]}, []]
    references = [["a"], ["a", "b"], ["a"]]
    assert map_at_20(predictions, references, CONTEXT).value == pytest.approx((1 + (1 / 2 + 2 / 3) / 2) / 3)
    assert mrr_at_20(predictions, references, CONTEXT).value == pytest.approx((1 + 1 / 2) / 3)


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        (["Q1"], [["Q1"]], "Item 0: expected a list of candidate ids, found 'Q1'"),
        ([["Q1"]], ["Q1"], "Item 0: expected a list of candidate ids, found 'Q1'"),
        ([["Q1"]], [[]], "Item 0: expected at least one right candidate"),
        ([[1]], [["1"]], "found 1 of type int"),
        ([], [], "at least one item"),
    ],
)
def test_rejects_what_does_not_fit(predictions: list[Any], references: list[Any], message: str) -> None:
    for metric in (map_at_20, mrr_at_20):
        with pytest.raises(ValueError, match=message):
            metric(predictions, references, CONTEXT)


def test_rejects_numbers_as_ids() -> None:
    with pytest.raises(ValueError, match="found 3 of type int"):
        top1_accuracy([{"candidate": 3}], ["3"], CONTEXT)
    with pytest.raises(ValueError, match="at least one target"):
        average_precision(["a"], [])
