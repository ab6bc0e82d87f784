"""Tests against a margin agree with scipy, and keep their error rates where losses are rare."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from harness.statistics import beyond_margin_p, largest_drop, t_interval


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("margin", [0.0, 0.02, 0.1])
def test_p_is_twice_that_of_the_one_sided_t_test(seed: int, margin: float) -> None:
    differences = np.random.default_rng(seed).choice([-1.0, 0.0, 1.0], 60, p=[0.3, 0.6, 0.1])
    se = float(stats.sem(differences))
    expected = stats.ttest_1samp(differences, -margin, alternative="less").pvalue
    found = beyond_margin_p(float(differences.mean()), se, 60, margin)
    assert found == pytest.approx(min(1.0, 2 * expected))


def test_the_largest_drop_is_the_end_of_the_t_interval_where_draws_differ_much() -> None:
    differences = np.random.default_rng(3).choice([-1.0, 0.0, 1.0], 80, p=[0.25, 0.55, 0.2])
    mean, se = float(differences.mean()), float(stats.sem(differences))
    interval = stats.ttest_1samp(differences, 0.0).confidence_interval(0.9)
    assert t_interval(mean, se, 80, level=0.9) == pytest.approx((interval.low, interval.high))
    assert largest_drop(mean, se, 80, level=0.9) == pytest.approx(-interval.low)


@pytest.mark.parametrize("draws", [20, 183, 500])
def test_equal_answers_allow_the_losses_that_none_of_n_allow(draws: int) -> None:
    expected = stats.binomtest(0, draws).proportion_ci(0.95, method="wilson").high
    assert largest_drop(0.0, None, draws) == pytest.approx(expected)


@pytest.mark.parametrize(("draws", "margin"), [(100, 0.05), (200, 0.02), (500, 0.02), (500, 0.05)])
@pytest.mark.parametrize("gained", [0.0, 0.01, 0.1])
def test_errors_are_rare_where_the_drop_is_the_margin(draws: int, margin: float, gained: float) -> None:
    """Nominal is 2.5 % on each side; the t interval alone would exclude the margin in up to 11 %."""
    random = np.random.default_rng(7)
    shares = [gained + margin, 1 - margin - 2 * gained, gained]
    excluded = established = 0
    for losses, _, gains in random.multinomial(draws, shares, 1000):
        mean = (gains - losses) / draws
        se = float(np.sqrt(((gains + losses) / draws - mean**2) / (draws - 1)))
        excluded += largest_drop(mean, se, draws) <= margin
        established += bool(se) and beyond_margin_p(mean, se, draws, margin) <= 0.05
    assert excluded <= 60
    assert established <= 40
