"""Several answers per item: pass@k against a count of all subsets, majorities, and metrics that stay means."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from harness.metrics.catalog import METRICS
from harness.metrics.metric import MetricContext
from harness.metrics.scoring import ScoreInput, joined_answers, pass_at_k, score_cell, shown_sizes

LABELS = ("yes", "no")


def repeated(*labels: str | None) -> dict[str, Any]:
    return joined_answers([{"label": label, "raw": str(label)} for label in labels])[0]


@pytest.mark.parametrize("answers", [1, 4, 7])
def test_pass_at_k_is_the_share_of_subsets_with_a_right_answer(answers: int) -> None:
    for right in range(answers + 1):
        for k in range(1, answers + 1):
            subsets = list(combinations([number < right for number in range(answers)], k))
            expected = sum(map(any, subsets)) / len(subsets)
            assert pass_at_k(answers, right, k) == pytest.approx(expected, abs=1e-12)


def test_sizes() -> None:
    assert [shown_sizes(repeats) for repeats in (2, 4, 6)] == [[1, 2], [1, 2, 4], [1, 2, 4, 6]]


def test_majorities() -> None:
    assert joined_answers([{"label": "a"}, {"label": "b"}, {"label": "b"}])[1] == 1
    assert joined_answers([{"label": "a"}, {"label": "b"}])[1] == 0, "the first one at a tie"
    assert joined_answers([{"label": None}, {"label": None}, {"label": "b"}])[1] == 2, "what was read counts"
    assert joined_answers([{"label": None}, {"label": None}])[1] == 0


def test_scores_of_a_cell() -> None:
    items = [
        ScoreInput(id="1", prediction=repeated("yes", "yes", "no", "yes"), reference="yes"),
        ScoreInput(id="2", prediction=repeated("no", None, None, "yes"), reference="yes"),
        ScoreInput(id="3", prediction=repeated("no", "no", "no", "no"), reference="yes"),
    ]
    metrics = [metric for metric in METRICS if metric.name in {"accuracy", "macro_f1"}]
    context = MetricContext(language="en", labels=LABELS)
    scores = score_cell(metrics, items, context)
    values = {name: score.value for name, score in scores.metrics.items()}
    assert values["accuracy"] == pytest.approx(4 / 12)
    assert scores.items["accuracy"] == [0.75, 0.25, 0.0]
    assert values["pass@1"] == pytest.approx(values["accuracy"])
    assert values["pass@2"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert values["pass@4"] == pytest.approx(2 / 3)
    assert values["majority@4"] == pytest.approx(1 / 3)
    assert scores.items["majority@4"] == [1.0, 0.0, 0.0]
    interval = scores.metrics["accuracy"].interval
    assert interval.groups == 3, "the answers to an item are drawn together"
