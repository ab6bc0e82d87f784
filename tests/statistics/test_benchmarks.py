"""The simulations of `benchmarks/coverage.py`, `power.py` and `item_response.py`, in small and whole."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.coverage import APART, ROWS, coverage, main
from benchmarks.item_response import Items, estimate, fit_items
from benchmarks.power import ROWS as POWER_ROWS, main as power_main, seen

QUICK = [
    name for name in ROWS if name.startswith(("transfer gap", "language", "mean over")) and "F1" not in name
]


@pytest.mark.parametrize("name", QUICK)
def test_intervals_of_languages_and_seeds_hold_the_truth(name: str) -> None:
    share, count = coverage(ROWS[name], 300)
    assert count == 300
    # Four standard errors of 300 draws.
    assert share == pytest.approx(0.95, abs=0.05)


def test_items_alone_do_not_cover_other_seeds() -> None:
    [name] = [name for name in ROWS if name.startswith(APART) and "not used" in name]
    assert coverage(ROWS[name], 300)[0] < 0.92


@pytest.mark.thorough
def test_all_are_within_93_to_97(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    assert capsys.readouterr().out.count("| ") >= len(ROWS)


QUICK_POWER = [
    "8 items, continuous",
    "40 clusters of 5",
    "4 languages of 50 items",
    "needed items, continuous",
]


@pytest.mark.parametrize("name", QUICK_POWER)
def test_planned_differences_are_found_in_four_of_five_simulations(name: str) -> None:
    # Four standard errors of 400 draws.
    assert seen(POWER_ROWS[name], 400)[0] == pytest.approx(0.8, abs=0.08)


@pytest.mark.parametrize("name", [name for name in POWER_ROWS if "8 items, 0/1" in name])
def test_permutations_of_few_binary_items_find_less(name: str) -> None:
    interval, permutation = seen(POWER_ROWS[name], 400)
    assert permutation < 0.5 < interval


@pytest.mark.thorough
def test_all_are_within_3_points_of_80(capsys: pytest.CaptureFixture[str]) -> None:
    power_main([])
    assert capsys.readouterr().out.count("| ") >= len(POWER_ROWS)


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
