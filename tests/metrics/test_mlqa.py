from __future__ import annotations

import re
import string
import sys
import unicodedata
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from harness.metrics.metric import MetricContext
from harness.metrics.question_answering import (
    MLQA_LANGUAGES as LANGUAGES,
    mixed_segmentation,
    mlqa_exact_match as exact_match,
    mlqa_f1 as f1,
    normalise_mlqa as normalise,
    squad_f1,
)

PUNCTUATION = {
    chr(point) for point in range(sys.maxunicode) if unicodedata.category(chr(point)).startswith("P")
} | set(string.punctuation)
ARTICLES = {
    "en": r"\b(a|an|the)\b",
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": r"\sال^|ال",
}
WORDS = st.sampled_from(
    [
        *[
            "the",
            "The",
            "a",
            "der",
            "des",
            "Die",
            "el",
            "la",
            "las",
            "của",
            "những",
            "ال",
            "الكتاب",
            "كتابال",
        ],
        *[
            "中国",
            "北京2008年",
            "三十八",
            "，",
            "。",
            "«gato»",
            "¿qué?",
            "e.g.",
            "1,000",
            "$5",
            "हिन्दी।",
            "Cat",
            "—",
        ],
    ]
)
TEXTS = (
    st.lists(WORDS, max_size=6).map(" ".join)
    | st.lists(WORDS, max_size=4).map("".join)
    | st.text(max_size=10)
)


def published_tokens(text: str, language: str) -> list[str]:
    """Return the normalised tokens of a text, written from the official script step by step."""
    text = "".join(character for character in text.lower() if character not in PUNCTUATION)
    if language in ARTICLES:
        text = re.sub(ARTICLES[language], " ", text)
    if language == "zh":
        text = re.sub(r"([\u4e00-\u9fa5])", r" \1 ", text)
    return text.split()


@given(st.sampled_from(LANGUAGES), TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_equals_the_official_script(language: str, prediction: str, references: list[str]) -> None:
    context = MetricContext(language=language)
    left = published_tokens(prediction, language)
    overlaps, equals = [], []
    for reference in references:
        right = published_tokens(reference, language)
        same = sum((Counter(left) & Counter(right)).values())
        overlaps.append(2 * same / (len(left) + len(right)) if same else 0.0)
        equals.append(float(left == right))
    assert f1([prediction], [references], context).value == pytest.approx(max(overlaps))
    assert exact_match([{"text": prediction}], [references], context).value == max(equals)


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "The «cat»", "cat"),
        ("es", "El gato — un «animal»", "gato animal"),
        ("de", "Der Hund des Mannes", "hund mannes"),
        ("de", "the Hund", "the hund"),
        ("vi", "Những con mèo của tôi", "con mèo tôi"),
        ("hi", "बिल्ली।", "बिल्ली"),
        ("ar", "الكتاب", "كتاب"),
        ("ar", "كتاب والقلم", "كتاب و قلم"),  # inside a word too
        ("zh", "北京2008年", "北 京 2008 年"),
        ("zh", "《红楼梦》 Dream", "红 楼 梦 dream"),
    ],
)
def test_normaliser(language: str, text: str, expected: str) -> None:
    assert normalise(text, language) == expected


def test_mixed_segmentation_keeps_punctuation_as_tokens() -> None:
    assert mixed_segmentation("北京 2008，ok go龦") == ["北", "京", "2008", "，", "ok", "go龦"]


def test_chinese_has_partial_overlap_unlike_in_squad() -> None:
    context = MetricContext(language="zh")
    assert f1(["三十八"], [["三十八分"]], context).value == pytest.approx(6 / 7)
    assert squad_f1(["三十八"], [["三十八分"]], context).value == 0.0


def test_the_language_is_that_of_the_answer() -> None:
    predictions, references = ["der Hund"], [["Hund"]]
    question = MetricContext(language="en", options={"answer_language": "de"})
    assert exact_match(predictions, references, question).value == 1.0
    assert exact_match(predictions, references, MetricContext(language="en")).value == 0.0


def test_rejects_a_language_without_rules() -> None:
    with pytest.raises(ValueError, match="'sw'; expected one of en, es, hi, vi, de, ar, zh"):
        f1(["paka"], [["paka"]], MetricContext(language="sw"))
