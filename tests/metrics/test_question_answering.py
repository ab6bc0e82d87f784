"""F1 and exact match of SQuAD, MLQA and MKQA against the published scripts."""

from __future__ import annotations

import re
import string
import sys
import unicodedata
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.metrics.metric import MetricContext
from harness.metrics.question_answering import (
    MLQA_LANGUAGES,
    mixed_segmentation,
    mkqa_exact_match,
    mkqa_f1,
    mlqa_exact_match,
    mlqa_f1,
    normalise_mkqa,
    normalise_mlqa,
    normalise_squad,
    squad_exact_match,
    squad_f1,
)

ENGLISH = MetricContext(language="en")
SQUAD_WORDS = st.sampled_from(
    "the The a an A. cat Cat, cats U.S. the-cat 1,000 das 猫 الكتاب İ ß — theatre".split()
)
SQUAD_TEXTS = st.lists(SQUAD_WORDS, max_size=6).map(" ".join) | st.text(max_size=12)
QUESTIONS = st.lists(
    st.tuples(SQUAD_TEXTS, st.lists(SQUAD_TEXTS, min_size=1, max_size=3)), min_size=1, max_size=8
)


SQUAD = "squad"
PUNCTUATION = {
    chr(point) for point in range(sys.maxunicode) if unicodedata.category(chr(point)).startswith("P")
} | set(string.punctuation)
ARTICLES = {
    SQUAD: r"\b(a|an|the)\b",
    "en": r"\b(a|an|the)\b",
    "es": r"\b(un|una|unos|unas|el|la|los|las)\b",
    "vi": r"\b(của|là|cái|chiếc|những)\b",
    "de": r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": r"\sال^|ال",
}


def published_tokens(text: str, language: str) -> list[str]:
    """Return the normalised tokens of a text, written from the official scripts step by step."""
    marks = set(string.punctuation) if language == SQUAD else PUNCTUATION
    text = "".join(character for character in text.lower() if character not in marks)
    if language in ARTICLES:
        text = re.sub(ARTICLES[language], " ", text)
    if language == "zh":
        text = re.sub(r"([\u4e00-\u9fa5])", r" \1 ", text)
    return text.split()


def published(prediction: str, references: list[str], language: str) -> tuple[float, float]:
    """Return (F1, EM) of one question; the rules are those of MLQA in a language, or of `SQUAD`."""
    left, scores = published_tokens(prediction, language), []
    for reference in references:
        right = published_tokens(reference, language)
        same = sum((Counter(left) & Counter(right)).values())
        scores.append((2 * same / (len(left) + len(right)) if same else 0.0, float(left == right)))
    return max(overlap for overlap, _ in scores), max(equal for _, equal in scores)


@given(QUESTIONS)
def test_squad_equals_the_official_script(questions: list[tuple[str, list[str]]]) -> None:
    predictions = [prediction for prediction, _ in questions]
    references = [texts for _, texts in questions]
    expected = [published(prediction, texts, SQUAD) for prediction, texts in questions]
    for metric, column in ((squad_f1, 0), (squad_exact_match, 1)):
        result = metric(predictions, references, ENGLISH)
        assert result.items is not None
        assert result.items.tolist() == pytest.approx([pair[column] for pair in expected])
        assert result.value == pytest.approx(sum(pair[column] for pair in expected) / len(questions))
        assert 0.0 <= result.value <= 1.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Cat.", "cat"),
        ("the.", ""),  # punctuation goes first, so what is left is an article
        ("a-an", "aan"),
        ("U.S.", "us"),
        ("theatre", "theatre"),
        ("El gato — «negro»", "el gato — «negro»"),  # neither Spanish articles nor Unicode punctuation
        ("\u00a0the\u3000cat", "cat"),
    ],
)
def test_normaliser_of_squad(text: str, expected: str) -> None:
    assert normalise_squad(text) == expected


def test_f1_and_exact_match_take_their_best_references_separately() -> None:
    predictions, references = ["cat cat"], [["cat"], ["the"]]
    assert squad_f1(predictions, [references[0]], ENGLISH).value == pytest.approx(2 / 3)
    both_empty = [["the"]]
    assert squad_exact_match([""], both_empty, ENGLISH).value == 1.0
    assert squad_f1([""], both_empty, ENGLISH).value == 0.0
    assert squad_exact_match([{"text": None}], both_empty, ENGLISH).value == 0.0
    outputs = [{"text": "the black cat", "start": 0, "end": 13, "score": 1.5}, "dog", {"text": "in 1990"}]
    items = squad_f1(outputs, [["a cat", "black cats and dogs"], ["cat"], ["1990"]], ENGLISH).items
    assert items is not None and items.tolist() == pytest.approx([2 / 3, 0.0, 2 / 3])


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        (["a"], [], "each of the 0 references"),
        ([], [], "at least one item"),
        (["a"], [[]], r"Item 0: expected a list of at least one reference text, found \[\]"),
        (["a"], ["a"], "Item 0: expected a list of at least one reference text, found 'a'"),
        (["a", 3], [["a"], ["b"]], "Item 1: expected an answer text, found 3 of type int"),
        ([{"answer": "a"}], [["a"]], "key 'text', found 'answer'"),
    ],
)
def test_rejects_what_does_not_fit(predictions: list[Any], references: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        squad_f1(predictions, references, ENGLISH)


MLQA_WORDS = st.sampled_from(
    "the The a der des Die el la las của những ال الكتاب كتابال 中国 北京2008年 三十八 ， 。 "
    "«gato» ¿qué? e.g. 1,000 $5 हिन्दी। Cat —".split()
)
MLQA_TEXTS = (
    st.lists(MLQA_WORDS, max_size=6).map(" ".join)
    | st.lists(MLQA_WORDS, max_size=4).map("".join)
    | st.text(max_size=10)
)


@given(st.sampled_from(MLQA_LANGUAGES), MLQA_TEXTS, st.lists(MLQA_TEXTS, min_size=1, max_size=3))
def test_mlqa_equals_the_official_script(language: str, prediction: str, references: list[str]) -> None:
    context = MetricContext(language=language)
    overlap, equal = published(prediction, references, language)
    assert mlqa_f1([prediction], [references], context).value == pytest.approx(overlap)
    assert mlqa_exact_match([{"text": prediction}], [references], context).value == equal


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
def test_normaliser_of_mlqa(language: str, text: str, expected: str) -> None:
    assert normalise_mlqa(text, language) == expected


def test_chinese_has_partial_overlap_unlike_in_squad() -> None:
    context = MetricContext(language="zh")
    assert mlqa_f1(["三十八"], [["三十八分"]], context).value == pytest.approx(6 / 7)
    assert squad_f1(["三十八"], [["三十八分"]], context).value == 0.0
    assert mixed_segmentation("北京 2008，ok go龦") == ["北", "京", "2008", "，", "ok", "go龦"]
    with pytest.raises(ValueError, match="'sw'; expected one of en, es, hi, vi, de, ar, zh"):
        mlqa_f1(["paka"], [["paka"]], MetricContext(language="sw"))


def test_the_language_is_that_of_the_answer() -> None:
    predictions, references = ["der Hund"], [["Hund"]]
    question = MetricContext(language="en", options={"answer_language": "de"})
    assert mlqa_exact_match(predictions, references, question).value == 1.0
    assert mlqa_exact_match(predictions, references, MetricContext(language="en")).value == 0.0


@pytest.mark.parametrize(
    ("language", "prediction", "answers", "expected_f1", "expected_match"),
    [
        ("en", "first dummy answer", ["first dummy answer", "second dummy answer"], 1.0, 1.0),
        ("en", "alternative answer", ["dummy answer one", "alternative answer two"], 0.8, 0.0),
        ("en", "an answer ?? without stopwords", ["answer -- without, stopwords!!"], 1.0, 1.0),
        ("en", "", ["first dummy answer", "second dummy answer"], 0.0, 0.0),
        ("en", "no", ["yes"], 0.0, 0.0),
        ("es", "esto es manzana", ["esto es una manzana", "esta es otra manzana"], 1.0, 1.0),
        ("ar", "تفاحة", ["التفاحة", "هذه تفاحة"], 1.0, 1.0),
        ("fr", "c'est de la pomme", ["c'est la pomme", "c'est une autre pomme"], 1.0, 1.0),
        ("hu", "ez egy alma", ["ez alma", "ez egy újabb alma"], 1.0, 1.0),
        ("zh", "这个一个苹果", ["这是还是苹果", "这是另一个苹果"], 0.7692307692307692, 0.0),
        ("km", "នេះគឺជាផ្លែប៉ោម", ["នេះគឺជាផ្លែប៉ោមមួយទៀត"], 0.8333333333333333, 0.0),
    ],
)
def test_mkqa_gives_the_numbers_of_its_authors_tests(
    language: str, prediction: str, answers: list[str], expected_f1: float, expected_match: float
) -> None:
    context = MetricContext(language=language)
    assert mkqa_f1([{"text": prediction}], [answers], context).value == pytest.approx(expected_f1, abs=1e-12)
    assert mkqa_exact_match([{"text": prediction}], [answers], context).value == expected_match


def test_texts_of_articles_alone_are_equal() -> None:
    assert mkqa_f1(["the"], [["A"]], ENGLISH).value == 1.0
    assert mkqa_f1(["the"], [["a cat"]], ENGLISH).value == 0.0
    with pytest.raises(ValueError, match="sw"):
        normalise_mkqa("x", "sw")
