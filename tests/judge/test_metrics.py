from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from sklearn.metrics import cohen_kappa_score

from harness.metrics.metric import MetricContext, MetricResult
from harness_judge.metrics import METRICS

BY_NAME = {metric.name: metric for metric in METRICS}


def score(
    name: str, verdicts: Sequence[str | None], references: Sequence[Any], **context: Any
) -> MetricResult:
    given = MetricContext(language="en", **context)
    return BY_NAME[name].compute([{"label": verdict} for verdict in verdicts], references, given)


def golds(labels: str) -> list[dict[str, Any]]:
    return [{"label": label, "order": None} for label in labels.split()]


def test_kappa_is_that_of_scikit_learn_with_unreadable_as_a_verdict() -> None:
    verdicts = ["yes", "no", None, "yes", "no", "yes", "yes", None]
    gold = "yes no no no no yes yes yes"
    found = score("judge_kappa", verdicts, golds(gold), labels=("no", "yes"))
    expected = cohen_kappa_score([verdict or "?" for verdict in verdicts], gold.split())
    assert found.value == pytest.approx(expected)
    assert found.counts is not None
    assert BY_NAME["judge_kappa"].from_counts is not None
    assert BY_NAME["judge_kappa"].from_counts(found.counts.sum(axis=0)) == pytest.approx(expected)


def test_a_judge_that_always_says_the_same_has_no_kappa_and_the_accuracy_of_guessing() -> None:
    gold = golds("no yes no no")
    assert score("judge_kappa", ["no"] * 4, gold, labels=("no", "yes")).value == 0
    assert score("judge_kappa", ["no"] * 4, golds("no no no no"), labels=("no", "yes")).value == 0
    assert score("judge_accuracy", ["no"] * 4, gold).value == 0.75


def test_an_unreadable_verdict_disagrees_with_gold() -> None:
    assert score("judge_accuracy", ["yes", None], golds("yes yes")).value == 0.5


def test_agreement_without_gold_is_an_error() -> None:
    with pytest.raises(ValueError, match="right verdict"):
        score("judge_accuracy", ["1"], [{"label": None, "order": None}])


def test_a_rating_is_the_mean_of_the_readable_verdicts() -> None:
    found = score("judge_rating", ["1", "5", "4", None], golds("1 1 1 1"), labels=tuple("12345"))
    assert found.value == pytest.approx((0 + 1 + 0.75) / 3)


def test_a_rating_without_a_readable_verdict_is_an_error() -> None:
    with pytest.raises(ValueError, match="No verdict"):
        score("judge_rating", [None], golds("1"), labels=("1", "2"))


ORDERS = [{"label": None, "pair": "a", "order": order} for order in ("given", "swapped")]


@pytest.mark.parametrize(
    ("given", "swapped", "preference", "change"),
    [
        ("1", "2", 1.0, 0.0),
        ("2", "1", 0.0, 0.0),
        ("0", "0", 0.5, 0.0),
        ("1", "1", 0.5, 1.0),
        ("2", "2", 0.5, 1.0),
        ("1", "0", 0.5, 1.0),
        ("1", None, 0.5, 1.0),
        (None, None, 0.5, 1.0),
    ],
)
def test_a_win_counts_where_both_orders_agree(
    given: str | None, swapped: str | None, preference: float, change: float
) -> None:
    assert score("judge_preference", [given, swapped], ORDERS).value == preference
    assert score("judge_order_change", [given, swapped], ORDERS).value == change


def test_pairs_are_found_in_any_order_and_count_once() -> None:
    references = [ORDERS[0], ORDERS[0] | {"pair": "b"}, ORDERS[1] | {"pair": "b"}, ORDERS[1]]
    found = score("judge_preference", ["1", "2", "1", "2"], references)
    assert found.value == 0.5
    assert found.counts is not None
    assert found.counts.tolist() == [[1, 1], [0, 1], [0, 0], [0, 0]]


def test_half_a_pair_is_an_error() -> None:
    with pytest.raises(ValueError, match="both orders"):
        score("judge_preference", ["1"], ORDERS[:1])
