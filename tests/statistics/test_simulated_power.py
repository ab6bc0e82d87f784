"""The simulation of `benchmarks/power.py`: a few rows in small, and whole."""

from __future__ import annotations

import pytest

from benchmarks.power import ROWS, main, seen

QUICK = ["8 items, continuous", "40 clusters of 5", "4 languages of 50 items", "needed items, continuous"]


@pytest.mark.parametrize("name", QUICK)
def test_planned_differences_are_found_in_four_of_five_simulations(name: str) -> None:
    # Four standard errors of 400 draws.
    assert seen(ROWS[name], 400)[0] == pytest.approx(0.8, abs=0.08)


@pytest.mark.parametrize("name", [name for name in ROWS if "8 items, 0/1" in name])
def test_permutations_of_few_binary_items_find_less(name: str) -> None:
    interval, permutation = seen(ROWS[name], 400)
    assert permutation < 0.5 < interval


@pytest.mark.thorough
def test_all_are_within_3_points_of_80(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    assert capsys.readouterr().out.count("| ") >= len(ROWS)
