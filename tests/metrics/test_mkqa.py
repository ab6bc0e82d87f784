"""The cases of the authors' own tests (apple/ml-mkqa, tests/test_mkqa_eval.py at 94ed242), with their numbers."""

from __future__ import annotations

import pytest

from harness.metrics.metric import MetricContext
from harness.metrics.question_answering import (
    MKQA_LANGUAGES as LANGUAGES,
    mkqa_exact_match as exact_match,
    mkqa_f1 as f1,
    normalise_mkqa as normalise,
)


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
def test_the_authors_cases(
    language: str, prediction: str, answers: list[str], expected_f1: float, expected_match: float
) -> None:
    context = MetricContext(language=language)
    assert f1([{"text": prediction}], [answers], context).value == pytest.approx(expected_f1, abs=1e-12)
    assert exact_match([{"text": prediction}], [answers], context).value == expected_match


def test_texts_of_articles_alone_are_equal() -> None:
    context = MetricContext(language="en")
    assert f1(["the"], [["A"]], context).value == 1.0
    assert f1(["the"], [["a cat"]], context).value == 0.0


def test_the_languages_are_the_26() -> None:
    assert len(LANGUAGES) == 26
    with pytest.raises(ValueError, match="sw"):
        normalise("x", "sw")
