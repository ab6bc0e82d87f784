"""Adjusted p-values, tie groups, rank intervals and power against independent references."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.statistics import (
    benjamini_hochberg,
    detectable_difference,
    holm,
    needed_groups,
    paired_sd,
    rank_intervals,
    tied_with_best,
)

_P = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(_P)
def test_benjamini_hochberg_is_that_of_scipy(p: list[float]) -> None:
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p))


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


@pytest.fixture(scope="module")
def multitest() -> Iterator[Any]:
    """Return the reference; it collects garbage in every call, which takes long where many tests have run."""
    module = pytest.importorskip("statsmodels.stats.multitest")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "collect", lambda generation=2: 0)
        yield module


@given(_P)
def test_both_are_those_of_statsmodels(multitest: Any, p: list[float]) -> None:
    assert holm(p) == pytest.approx(multitest.multipletests(p, method="holm")[1])
    assert benjamini_hochberg(p) == pytest.approx(multitest.multipletests(p, method="fdr_bh")[1])


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


def test_the_detectable_difference_is_found_with_its_power() -> None:
    sd, groups = 0.5, 400
    found = detectable_difference(sd, groups)
    assert found == pytest.approx((1.959964 + 0.841621) * 0.5 / 20, rel=1e-6)
    assert found is not None
    power = stats.norm.sf(1.959964 - found / (sd / 20))
    assert power == pytest.approx(0.8, abs=1e-4)
    assert detectable_difference(sd, 0) is None
    assert detectable_difference(1.0, 1) == 1.0


def test_the_needed_draws_show_the_difference_in_four_of_five_simulations() -> None:
    random, difference = np.random.default_rng(25), 0.05
    groups = needed_groups(0.4, difference)
    found = detectable_difference(0.4, groups)
    assert found is not None
    assert found <= difference < (detectable_difference(0.4, groups - 1) or 0)
    drawn = random.normal(difference, 0.4, (2_000, groups))
    tests = stats.ttest_1samp(drawn, 0.0, axis=1)
    assert float(np.mean(tests.pvalue < 0.05)) == pytest.approx(0.8, abs=0.02)


def test_the_paired_deviation_is_that_of_two_correlated_answers() -> None:
    # Both right 0.4, both wrong 0.4, one right 0.1 each: mean 0.5, covariance 0.15, correlation 0.6.
    assert paired_sd(0.5, 0.6) == pytest.approx(np.sqrt(0.2))
    assert paired_sd(0.9, 1.0) == 0.0
