"""Adjusted p-values, tie groups, rank intervals and power against independent references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from harness.statistics import (
    benjamini_hochberg,
    detectable_difference,
    holm,
    mean_ranks,
    needed_groups,
    paired_sd,
    rank_intervals,
    tied_with_best,
)

_P = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(_P)
def test_benjamini_hochberg_is_that_of_scipy(p: list[float]) -> None:
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p))


@given(st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=1, max_size=5))
def test_ranks_are_those_of_scipy(rows: list[list[int]]) -> None:
    values = np.array(rows) / 3
    assert mean_ranks(values).tolist() == stats.rankdata(values, axis=1).tolist()
    assert mean_ranks(values[0]).tolist() == stats.rankdata(values[0]).tolist()


@given(_P)
def test_holm_rejects_what_its_steps_reject(p: list[float]) -> None:
    adjusted = holm(p)
    order = np.argsort(p, kind="stable")
    for alpha in (0.01, 0.05, 0.2):
        rejected = np.zeros(len(p), dtype=bool)
        for step, index in enumerate(order):
            if p[index] * (len(p) - step) > alpha:
                break
            rejected[index] = True
        assert (adjusted <= alpha).tolist() == rejected.tolist()


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]).tolist() == benjamini_hochberg([]).tolist() == []


def test_ties_with_the_best_are_those_that_holm_keeps() -> None:
    assert tied_with_best([0.5, 0.9, 0.8, 0.7], [0.001, None, 0.4, 0.02]) == [False, True, True, False]
    # 0.03 alone would be significant; of two tests it is not.
    assert tied_with_best([0.9, 0.8, 0.8], [None, 0.03, 0.03]) == [True, True, True]
    assert tied_with_best([0.9, 0.8, 0.9], [None, None, None]) == [True, True, True]
    assert tied_with_best([0.3], [None]) == [True]


def test_ranks_are_the_middle_of_the_draws() -> None:
    draws = np.zeros((1_000, 3))
    draws[:, 0] = 0.9
    draws[:, 1] = np.where(np.arange(1_000) < 100, 0.2, 0.6)
    draws[:, 2] = 0.5
    assert rank_intervals(draws) == [(1, 1), (2, 3), (2, 3)]
    draws[:, 1] = np.where(np.arange(1_000) < 10, 0.2, 0.6)
    assert rank_intervals(draws) == [(1, 1), (2, 2), (3, 3)]
    assert rank_intervals(np.zeros((10, 2))) == [(1, 1), (1, 1)]


@pytest.mark.parametrize("groups", [5, 8, 16, 32, 400, 1_000_000])
def test_the_detectable_difference_is_found_with_its_power(groups: int) -> None:
    sd, limit = 0.5, stats.t.ppf(0.975, groups - 1)
    found = detectable_difference(sd, groups)
    assert found is not None
    assert stats.nct.sf(limit, groups - 1, found / (sd / groups**0.5)) == pytest.approx(0.8, abs=1e-6)


def test_few_draws_show_no_difference() -> None:
    assert [detectable_difference(0.5, groups) for groups in (0, 1, 2, 3)] == [None] * 4
    assert detectable_difference(0.0, 2) == 0.0


@pytest.mark.parametrize(
    ("effect", "needed"), [(0.2, 199), (0.3, 90), (0.5, 34), (0.8, 15), (1.0, 10), (2.0, 5)]
)
def test_the_needed_draws_are_those_of_published_tables(effect: float, needed: int) -> None:
    """As G*Power and statsmodels' TTestPower give them for a paired test, two-sided at 5 %, with 80 % power."""
    assert needed_groups(0.4, 0.4 * effect) == needed


@given(sd=st.floats(0.05, 1), difference=st.floats(0.02, 0.99), draws=st.floats(0.5, 500))
def test_one_group_less_does_not_show_the_difference(sd: float, difference: float, draws: float) -> None:
    groups = needed_groups(sd, difference, draws=draws)

    def power(count: int) -> float:
        freedom = count * draws - 1
        shift = difference * count**0.5 / sd
        return float(stats.nct.sf(stats.t.ppf(0.975, freedom), freedom, shift)) if freedom >= 1 else 0.0

    assert power(groups) >= 0.8 - 1e-4
    assert power(groups - 1) <= 0.8 + 1e-4


def test_the_needed_draws_show_the_difference_in_four_of_five_simulations() -> None:
    random = np.random.default_rng(25)
    for difference in (0.05, 0.4):
        groups = needed_groups(0.4, difference)
        drawn = random.normal(difference, 0.4, (4_000, groups))
        tests = stats.ttest_1samp(drawn, 0.0, axis=1)
        assert float(np.mean((tests.pvalue < 0.05) & (tests.statistic > 0))) == pytest.approx(0.8, abs=0.03)


def test_the_paired_deviation_is_that_of_two_correlated_answers() -> None:
    # Both right 0.4, both wrong 0.4, one right 0.1 each: mean 0.5, covariance 0.15, correlation 0.6.
    assert paired_sd(0.5, 0.6) == pytest.approx(np.sqrt(0.2))
    assert paired_sd(0.9, 1.0) == 0.0
