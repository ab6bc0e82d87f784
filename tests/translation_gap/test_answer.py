"""The answer of a gap: what the flags and intervals that were computed say, in words."""

from __future__ import annotations

from typing import Any

import pytest

from harness.statistics import Interval
from harness_translation.gap.answer import _answer, _sentence
from harness_translation.gap.means import Estimate
from harness_translation.gap.measure import GapValue


def _value(low: float | None, high: float | None, *, flagged: bool, value: float = 0.1667) -> GapValue:
    interval = Interval(se=0.05, low=low, high=high, method="bootstrap")
    given: dict[str, Any] = {
        "quantity": "bt_tt", "translator": "*", "language": "de", "languages": ("de",), "subset": "all", "items": 24,
    }  # fmt: skip
    return GapValue(**given, estimate=Estimate(value=value, interval=interval), flagged=flagged)


@pytest.mark.parametrize(
    ("low", "high", "flagged", "expected"),
    [
        (0.042, 0.333, True, "yes"),
        (0.042, 0.333, False, "undecided"),
        (-0.01, 0.333, True, "undecided"),
        (-0.1, 0.2, False, "no evidence"),
        (-0.3, -0.1, False, "no"),
        (None, None, True, "undecided"),
    ],
)
def test_the_answer_needs_the_flag_and_the_interval(
    low: float | None, high: float | None, flagged: bool, expected: str
) -> None:
    assert _answer(_value(low, high, flagged=flagged)) == expected


def test_the_sentence_has_the_gap_and_its_interval() -> None:
    assert _sentence(_value(0.042, 0.333, flagged=True), "de") == "German: yes, +16.7 points (4.2 to 33.3)."
