"""Coefficients and tests against published numbers, scikit-learn and statsmodels."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.proportion import proportions_ztest

from harness.statistics import wilson
from harness_translation.annotation.agreement import (
    alpha_interval,
    cohen_kappa,
    krippendorff_alpha,
    two_proportions,
    weighted_share,
)

PUBLISHED = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)
"""Four observers and twelve units with missing data: Krippendorff 2011, section C; nominal alpha is 0.743."""


def units(rows: tuple[str, ...]) -> list[list[str]]:
    return [[label for label in column if label != "."] for column in zip(*map(str.split, rows), strict=True)]


def test_alpha_is_that_of_the_published_example() -> None:
    alpha = krippendorff_alpha(units(PUBLISHED))
    assert alpha == pytest.approx(0.743, abs=5e-4)
    interval = alpha_interval(units(PUBLISHED), seed=1)
    assert interval is not None and alpha is not None
    assert interval[0] < alpha < interval[1] <= 1
    assert interval == alpha_interval(units(PUBLISHED), seed=1)


def test_alpha_of_two_observers_without_missing_data_is_the_published_one() -> None:
    """Krippendorff 2011, section B: ten units, nominal data, alpha = 0.095 of binary and 0.692 of five values."""
    binary = ("0 1 0 0 0 0 0 0 1 0", "1 1 1 0 0 1 0 0 0 0")
    nominal = ("a a b b d c c c e d d a", "b a b b b c c c e d d d")
    assert krippendorff_alpha(units(binary)) == pytest.approx(0.095, abs=5e-4)
    assert krippendorff_alpha(units(nominal)) == pytest.approx(0.692, abs=5e-4)


def test_alpha_is_none_without_variation_or_shared_items() -> None:
    assert krippendorff_alpha([["a", "a"], ["a", "a"]]) is None
    assert krippendorff_alpha([["a"], ["b"], []]) is None
    assert alpha_interval([["a", "b"]]) is None


LABELS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=2, max_size=40)


@given(LABELS)
def test_kappa_is_that_of_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    kappa = cohen_kappa(first, second)
    if len({*first, *second}) == 1:
        assert kappa is None
        return
    assert kappa == pytest.approx(cohen_kappa_score(first, second))


@given(LABELS, st.randoms(use_true_random=False))
def test_alpha_depends_on_no_order(pairs: list[tuple[str, str]], shuffler: random.Random) -> None:
    alpha = krippendorff_alpha(pairs)
    shuffled = [list(pair) for pair in pairs]
    shuffler.shuffle(shuffled)
    for pair in shuffled:
        shuffler.shuffle(pair)
    again = krippendorff_alpha(shuffled)
    assert (alpha is None) is (again is None)
    assert alpha is None or again == pytest.approx(alpha, abs=1e-12)


@pytest.mark.parametrize("counts", [(133, 200, 160, 200), (120, 200, 142, 200), (3, 10, 9, 12)])
def test_the_test_of_two_proportions_is_that_of_statsmodels(counts: tuple[int, int, int, int]) -> None:
    first, n_first, second, n_second = counts
    _, expected = proportions_ztest([first, second], [n_first, n_second])
    assert two_proportions(*counts) == pytest.approx(expected)


def test_two_proportions_that_are_all_or_nothing_do_not_differ() -> None:
    assert two_proportions(5, 5, 7, 7) == two_proportions(0, 5, 0, 7) == 1.0


def test_one_stratum_has_the_plain_interval() -> None:
    share = weighted_share([True] * 133 + [False] * 67, ["all"] * 200, {"all": 5010})
    assert (share.value, share.low, share.high) == pytest.approx((0.665, *wilson(133, 200)))


def test_strata_weigh_by_their_size() -> None:
    hits = [True] * 8 + [False] * 2 + [True] * 3 + [False] * 7
    share = weighted_share(hits, ["often"] * 10 + ["rare"] * 10, {"often": 900, "rare": 100})
    assert share.value == pytest.approx(0.9 * 0.8 + 0.1 * 0.3)
    variance = 0.81 * 0.16 / 9 + 0.01 * 0.21 / 9
    assert share.high - share.low == pytest.approx(2 * 1.96 * math.sqrt(variance), rel=0.25)
