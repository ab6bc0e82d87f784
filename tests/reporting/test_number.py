"""Scores with their intervals: no printed interval reaches beyond what a score can be."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from harness.reporting.blocks.number import LOPSIDED, uncertainty
from harness.reporting.render.text import escape_latex
from harness.statistics import wilson

ENDS = re.compile(r"\((\d+(?:\.\d)?)–(\d+(?:\.\d)?)\)")


def printed_ends(value: float, text: str) -> tuple[float, float]:
    """Return the interval that a reader takes from the text, in points."""
    if found := ENDS.fullmatch(text):
        return float(found[1]), float(found[2])
    half = float(text.removeprefix("±"))
    return round(value * 100, 1) - half, round(value * 100, 1) + half


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_printed_interval_of_a_proportion_is_its_interval(hits: tuple[int, int]) -> None:
    right, n = hits
    low, high = wilson(float(right), n)
    printed = printed_ends(right / n, uncertainty(right / n, (low, high)))
    assert printed[0] >= -1e-9
    assert printed[1] <= 100 + 1e-9
    slack = LOPSIDED * 50 * (high - low) + 0.15
    assert printed[0] == pytest.approx(low * 100, abs=slack)
    assert printed[1] == pytest.approx(high * 100, abs=slack)


def test_no_interval_is_no_text() -> None:
    assert uncertainty(0.5, None) == ""


def test_latex_sets_the_dash_of_a_range() -> None:
    assert escape_latex(uncertainty(1.0, (0.862, 1.0))) == "(86.2--100)"
    assert escape_latex(uncertainty(0.5, (0.4, 0.6))) == r"$\pm$10.0"
