"""The scoring of ONERULER, answer by answer; the expected verdicts are those of its eval/evaluate.py."""

from __future__ import annotations

import pytest

from harness.metrics import MetricContext
from harness_long_context.metrics import LANGUAGES, METRICS, needle_is_right, words_are_right

NEEDLES, WORDS = METRICS


@pytest.mark.parametrize(
    ("answer", "gold", "language", "verdict"),
    [
        ("<Answer> 1234567 </Answer>", "1234567", "en", True),
        ("1234567", "1234567, 7654321", "en", False),  # one is missing
        ("7654321 and 1234567", "1234567, 7654321", "en", True),  # any order
        ("1234567, 7654321, 1111111", "1234567, 7654321", "en", False),  # one too many
        ("1234567 and again 1234567", "1234567", "en", True),
        ("1. 1234567\n2. 7654321", "1234567, 7654321", "en", True),  # single digits do not count
        ("10. 1234567", "1234567", "en", False),
        ("1,234,567", "1234567", "en", False),
        ("01234567 or 1234567", "1234567", "en", False),  # two texts of one number
        ("۱۲۳۴۵۶۷", "1234567", "fa", True),
        ("１２３４５６７", "1234567", "ja", True),
        ("1234567, otherwise none", "1234567", "en", False),
        ("1234567, otherwise None", "1234567", "en", True),  # in numbers the word counts as it is written
        ("9" * 5000, "1234567", "en", False),
        ("", "1234567", "en", False),
        ("None.", "none", "en", True),
        ("none, but 1234567", "none", "en", True),  # as the authors decide it
        ("no such number", "none", "en", False),
        ("keine  VORHANDEN", "Keine vorhanden", "de", True),
        ("数字はありません", "なし", "ja", True),
        ("هیچ\u200cکدام", "هیچ کدام", "fa", True),
    ],
)
def test_needles_are_judged_as_the_authors_do(answer: str, gold: str, language: str, verdict: bool) -> None:
    assert needle_is_right(answer, gold, language) is verdict


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [("Rope, LAMP and candle", True), ("rope, candle", False), ("candlestick ropes lamp", True)],
)
def test_all_frequent_words_must_occur(answer: str, verdict: bool) -> None:
    assert words_are_right(answer, "lamp, rope, candle", "en") is verdict


def test_the_whole_answer_is_read_and_bare_texts_too() -> None:
    context = MetricContext(language="en")
    written = {"text": "<Answer>", "raw": "<Answer>\n1234567\n</Answer>", "start": -1}
    result = NEEDLES.compute([written, "1234567", {"text": "7654321"}], [["1234567"]] * 3, context)
    assert result.items is not None
    assert result.items.tolist() == [1, 1, 0]
    assert WORDS.compute(["a b"], [["b, a"]], context).value == 1


def test_the_languages_are_those_of_the_paper() -> None:
    assert len(LANGUAGES) == 26
    assert all(row["none"] and row["dictionary"] for row in LANGUAGES.values())
    assert NEEDLES.languages == tuple(sorted(LANGUAGES))
