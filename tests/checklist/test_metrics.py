from __future__ import annotations

from collections.abc import Sequence

import pytest
from statsmodels.stats.proportion import proportion_confint

from harness.metrics.metric import MetricContext, MetricResult
from harness.metrics.scoring import ScoreInput, score_cell
from harness_checklist.metrics import METRICS, profile_from_tag, profile_tag
from harness_checklist.suite import Profile

BY_NAME = {metric.name: metric for metric in METRICS}
# Case, test, gold, answer, defect.
Item = tuple[str, str, str, str, str]
ITEMS: list[Item] = [
    ("a", "comparisons", "Anna", "Anna", ""),
    ("a", "comparisons", "Ben", "Ben", ""),
    ("b", "comparisons", "Anna", "Anna", ""),
    ("b", "comparisons", "Ben", "Carl", ""),
    ("c", "properties", "red", "the red", ""),
    ("d", "properties", "big", "red", "contradictory"),
    ("d", "properties", "red", "red", "contradictory"),
]


def _result(name: str, items: Sequence[Item], articles: tuple[str, ...] = ("the",)) -> MetricResult:
    tag = profile_tag(Profile(articles=articles))
    context = MetricContext(
        language="en",
        clusters=[item[0] for item in items],
        groups=[item[1] for item in items],
        tags=[{"normalise": tag, **({"defect": item[4]} if item[4] else {})} for item in items],
    )
    return BY_NAME[name].compute(
        [{"text": item[3]} for item in items], [[item[2]] for item in items], context
    )


def test_a_case_fails_where_one_of_its_examples_fails() -> None:
    profile = Profile(articles=("ال",), match="anywhere", strip=",. ৷", casefold=True)
    assert profile_from_tag(profile_tag(profile)) == profile
    assert _result("pass_rate", ITEMS).value == 0.5
    assert _result("case_error", ITEMS).value == 0.5
    assert _result("example_error", ITEMS).value == pytest.approx(2 / 7)
    groups = _result("case_error", ITEMS).groups
    assert {name: (group.value, group.n) for name, group in groups.items()} == {
        "comparisons": (0.5, 2),
        "properties": (0.5, 2),
    }
    bounds = groups["comparisons"].bounds
    assert bounds is not None
    assert (bounds.low, bounds.high) == pytest.approx(proportion_confint(1, 2, method="wilson"))


def test_the_floor_counts_cases_with_a_defect_and_the_corrected_error_skips_them() -> None:
    assert _result("case_floor", ITEMS).value == 0.25
    assert _result("corrected_error", ITEMS).value == pytest.approx(1 / 3)
    groups = _result("corrected_error", ITEMS).groups
    assert {name: (group.value, group.n) for name, group in groups.items()} == {
        "comparisons": (0.5, 2),
        "properties": (0.0, 1),
    }


def test_answers_are_compared_after_the_normalisation_of_the_language() -> None:
    assert _result("pass_rate", ITEMS[4:5]).value == 1.0
    assert _result("pass_rate", ITEMS[4:5], articles=()).value == 0.0


def test_no_answer_is_wrong_even_where_the_gold_answer_reads_none() -> None:
    context = MetricContext(language="en", clusters=["a"], groups=["t"], tags=[{}])
    assert BY_NAME["pass_rate"].compute([None], [["None"]], context).value == 0.0


def test_a_cell_keeps_groups_with_their_intervals() -> None:
    inputs = [
        ScoreInput(
            id=str(number),
            prediction={"text": answer},
            reference=[gold],
            cluster=case,
            group=test,
            tags={"defect": defect} if defect else {},
        )
        for number, (case, test, gold, answer, defect) in enumerate(ITEMS)
    ]
    scores = score_cell(METRICS, inputs, MetricContext(language="en"))
    kept = scores.metrics["case_error"].to_json()
    assert kept["ci_method"] == "wilson"
    assert kept["groups"]["comparisons"]["n"] == 2
    assert kept["groups"]["comparisons"]["ci"][0] > 0
    assert [row[1] for row in scores.items["pass_rate"]] == [1, 0, 1, 0, 1, 1, 0]
