"""The difference of two independent estimates, with an interval from the ends of both."""

from __future__ import annotations

import math

import pytest

from harness.reporting.overview.means import Estimate, contrast


def test_the_ends_of_a_difference_come_from_opposite_ends() -> None:
    one = Estimate(value=0.5, se=0.05, interval=(0.4, 0.7))
    difference = contrast(one, Estimate(value=0.3, se=0.1, interval=(0.2, 0.6)))
    assert difference is not None
    assert difference.low == pytest.approx(0.2 - math.hypot(0.1, 0.3))
    assert difference.high == pytest.approx(0.2 + math.hypot(0.2, 0.1))
