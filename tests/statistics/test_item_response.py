"""The 2PL model of the benchmark of item response theory finds the items that answers were simulated from."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.item_response import Items, estimate, fit_items


def test_simulated_items_are_found() -> None:
    random = np.random.default_rng(0)
    true = Items(random.normal(0, 0.4, 40), random.normal(0, 1, 40))
    answers = (random.random((3_000, 40)) < true.chances(random.normal(size=3_000))).astype(np.float64)
    found = fit_items(answers)
    assert found.hardness == pytest.approx(true.hardness, abs=0.3)
    assert found.log_slope == pytest.approx(true.log_slope, abs=0.3)


def test_an_estimate_of_all_items_is_their_mean() -> None:
    random = np.random.default_rng(0)
    items = Items(np.zeros(30), random.normal(0, 1, 30))
    answers = (random.random(30) < 0.5).astype(np.float64)
    value, se = estimate(items, answers, np.arange(30))
    assert value == pytest.approx(answers.mean())
    assert se == pytest.approx(0)
