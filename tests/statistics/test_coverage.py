"""The simulation of `benchmarks/coverage.py`: in small for every kind of interval of languages and seeds, and whole."""

from __future__ import annotations

import pytest

from benchmarks.coverage import APART, ROWS, coverage, main

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
