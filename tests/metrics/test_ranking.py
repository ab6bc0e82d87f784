"""Metrics of rankings: choices, candidates, one target per language."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import average_precision_score

from harness.metrics.metric import MetricContext, MetricFunction
from harness.metrics.ranking import (
    accuracy_byte,
    accuracy_char,
    accuracy_pmi,
    accuracy_token,
    average_precision,
    map_at_20,
    mrr,
    mrr_at_20,
    one_target_map_at_20,
    one_target_ranks,
    reciprocal_rank,
    top1_accuracy,
)

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
        (HEAD, accuracy_byte, r"Item 1: expected a ranked prediction with 'tokens'"),
        ({"label": "x", "raw": "x"}, accuracy_char, r"with 'scores' .*, found 'label', 'raw'\."),
        ("x", accuracy_token, r"with 'scores' .*, found 'x'\."),
        (_ranked([-1.0, -2.0, -3.0]), accuracy_pmi, r"with 'unconditional'"),
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
    with pytest.raises(ValueError, match="found 3 of type int"):
        top1_accuracy([{"candidate": 3}], ["3"], CONTEXT)
    with pytest.raises(ValueError, match="at least one target"):
        average_precision(["a"], [])


LANGUAGES = ("ar", "de", "en", "hi", "zh")


def removed(order: Sequence[str], targets: Sequence[str], target: str) -> float:
    """Rank a pool without the other targets, anew, and return the average precision at 20 of the one left."""
    pool = [candidate for candidate in order if candidate == target or candidate not in targets]
    hits, precisions = 0, []
    for rank, candidate in enumerate(pool[:20], start=1):
        if candidate == target:
            hits += 1
            precisions.append(hits / rank)
    return sum(precisions) / 1


@st.composite
def queries(draw: st.DrawFn) -> tuple[list[str], list[str], list[str]]:
    """An order of a whole pool, some targets in it, and a language for each."""
    order = draw(st.permutations([f"c{number}" for number in range(draw(st.integers(1, 45)))]))
    count = draw(st.integers(1, min(8, len(order))))
    # Half of the targets are looked for near the cut-off, where the two ways of counting could differ.
    near = [candidate for candidate in order[15:30]] or order
    targets = draw(st.lists(st.sampled_from([*order, *near, *near]), min_size=1, max_size=count, unique=True))
    return order, targets, [draw(st.sampled_from(LANGUAGES)) for _ in targets]


def _prediction(order: Sequence[str], others: int) -> dict[str, list[str]]:
    return {"candidates": list(order[:20]), "further": list(order[20 : 20 + others])}


@given(st.lists(queries(), min_size=1, max_size=4))
def test_it_equals_a_pool_without_the_other_targets(
    asked: list[tuple[list[str], list[str], list[str]]],
) -> None:
    predictions = [_prediction(order, len(targets) - 1) for order, targets, _ in asked]
    references = [{"targets": targets, "languages": languages} for _, targets, languages in asked]
    result = one_target_map_at_20(predictions, references, CONTEXT)
    expected = [[removed(order, targets, target) for target in targets] for order, targets, _ in asked]
    assert result.items is not None
    np.testing.assert_allclose(result.items, [fmean(scores) for scores in expected])
    assert result.value == pytest.approx(fmean(fmean(scores) for scores in expected))
    by_language: dict[str, list[float]] = {}
    for (_, _, languages), scores in zip(asked, expected, strict=True):
        for language, score in zip(languages, scores, strict=True):
            by_language.setdefault(language, []).append(score)
    assert result.groups is not None
    groups = result.groups
    assert {code: group.n for code, group in groups.items()} == {
        code: len(scores) for code, scores in by_language.items()
    }
    means = {code: fmean(scores) for code, scores in by_language.items()}
    assert {code: group.value for code, group in groups.items()} == pytest.approx(means)


@given(queries())
def test_with_one_target_it_is_the_mean_average_precision(
    query: tuple[list[str], list[str], list[str]],
) -> None:
    order, [target, *_], [language, *_] = query
    reference = [{"targets": [target], "languages": [language]}]
    for prediction in ({"candidates": order[:20]}, _prediction(order, 3)):
        one: Any = one_target_map_at_20([prediction], reference, CONTEXT)
        assert one.value == map_at_20([prediction], reference, CONTEXT).value


def test_a_target_behind_the_cut_off_counts_where_the_others_stood_before_it() -> None:
    order = ["t1", "t2", *(f"c{number}" for number in range(18)), "c18", "t3", "t4"]
    targets = ["t1", "t2", "t3", "t4"]
    assert one_target_ranks(order, targets) == [1.0, 1.0, 1 / 20, 1 / 20]
    assert one_target_ranks(order[:20], targets) == [1.0, 1.0, 0.0, 0.0]
    assert one_target_ranks(["c18", *order], targets)[2:] == [0.0, 0.0]
    assert one_target_ranks(["c", "t", "d", "t"], ["t"]) == [1 / 2]


def test_languages_and_targets_must_fit_together() -> None:
    with pytest.raises(ValueError, match=r"Item 0: 2 targets have 1 languages\."):
        one_target_map_at_20([["a"]], [{"targets": ["a", "b"], "languages": ["en"]}], CONTEXT)
    with pytest.raises(ValueError, match="languages"):
        one_target_map_at_20([["a"]], [{"targets": ["a"]}], CONTEXT)


@given(
    st.lists(st.sampled_from([f"c{number}" for number in range(12)]), max_size=40),
    st.sets(st.sampled_from([f"c{number}" for number in range(12)]), min_size=1),
)
def test_average_precision_with_repeated_and_overlong_rankings(ranking: list[str], targets: set[str]) -> None:
    seen: set[str] = set()
    hits, total = 0, 0.0
    for rank in range(1, 21):
        if rank > len(ranking):
            break
        candidate = ranking[rank - 1]
        if candidate in targets and candidate not in seen:
            hits += 1
            total += hits / rank
        seen.add(candidate)
    first = next((rank for rank, candidate in enumerate(ranking[:20], start=1) if candidate in targets), None)
    assert reciprocal_rank(ranking, targets) == (1 / first if first else 0.0)
    score = average_precision(ranking, targets)
    assert score == pytest.approx(total / min(len(targets), 20))
    assert 0 <= score <= 1
    # Ranks after the cut-off change nothing.
    assert average_precision([*ranking[:20], *targets] if len(ranking) >= 20 else ranking, targets) == score
