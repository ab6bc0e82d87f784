from __future__ import annotations

import re
import string
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.metrics.metric import MetricContext
from harness.metrics.question_answering import (
    normalise_squad as normalise,
    squad_exact_match as exact_match,
    squad_f1 as f1,
)

CONTEXT = MetricContext(language="en")
WORDS = st.sampled_from(
    [
        "the",
        "The",
        "a",
        "an",
        "A.",
        "cat",
        "Cat,",
        "cats",
        "U.S.",
        "the-cat",
        "1,000",
        "das",
        "猫",
        "الكتاب",
        "İ",
        "ß",
        "—",
        "theatre",
    ]
)
TEXTS = st.lists(WORDS, max_size=6).map(" ".join) | st.text(max_size=12)
QUESTIONS = st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)), min_size=1, max_size=8)


def published(prediction: str, references: list[str]) -> tuple[float, float]:
    """Return (F1, EM) of one question, written from the official script step by step."""

    def tokens(text: str) -> list[str]:
        text = "".join(character for character in text.lower() if character not in set(string.punctuation))
        return re.sub(r"\b(a|an|the)\b", " ", text).split()

    scores = []
    for reference in references:
        left, right = tokens(prediction), tokens(reference)
        same = sum((Counter(left) & Counter(right)).values())
        overlap = 2 * same / (len(left) + len(right)) if same else 0.0
        scores.append((overlap, float(left == right)))
    return max(score for score, _ in scores), max(score for _, score in scores)


@given(QUESTIONS)
def test_equals_the_official_script(questions: list[tuple[str, list[str]]]) -> None:
    predictions = [prediction for prediction, _ in questions]
    references = [texts for _, texts in questions]
    expected = [published(prediction, texts) for prediction, texts in questions]
    for metric, column in ((f1, 0), (exact_match, 1)):
        result = metric(predictions, references, CONTEXT)
        assert result.items is not None
        assert result.items.tolist() == pytest.approx([pair[column] for pair in expected])
        assert result.value == pytest.approx(sum(pair[column] for pair in expected) / len(questions))
        assert 0.0 <= result.value <= 1.0


@given(st.lists(TEXTS.filter(lambda text: bool(normalise(text))), min_size=1, max_size=8))
def test_gold_scores_one(texts: list[str]) -> None:
    references = [["something else", text] for text in texts]
    assert f1(texts, references, CONTEXT).value == pytest.approx(1.0)
    assert exact_match(texts, references, CONTEXT).value == 1.0


@given(QUESTIONS, st.randoms())
def test_does_not_depend_on_the_order(questions: list[tuple[str, list[str]]], random: Any) -> None:
    shuffled = random.sample(questions, len(questions))
    values = [
        f1([p for p, _ in order], [g for _, g in order], CONTEXT).value for order in (questions, shuffled)
    ]
    assert values[0] == pytest.approx(values[1])


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
def test_normaliser(text: str, expected: str) -> None:
    assert normalise(text) == expected


def test_worked_examples() -> None:
    predictions = [{"text": "the black cat", "start": 0, "end": 13, "score": 1.5}, "dog", {"text": "in 1990"}]
    references = [["a cat", "black cats and dogs"], ["cat"], ["1990"]]
    result = f1(predictions, references, CONTEXT)
    assert result.items is not None
    assert result.items.tolist() == pytest.approx([2 / 3, 0.0, 2 / 3])
    assert exact_match(predictions, references, CONTEXT).value == 0.0


def test_f1_and_exact_match_take_their_best_references_separately() -> None:
    predictions, references = ["cat cat"], [["cat"], ["the"]]
    assert f1(predictions, [references[0]], CONTEXT).value == pytest.approx(2 / 3)
    both_empty = [["the"]]
    assert exact_match([""], both_empty, CONTEXT).value == 1.0
    assert f1([""], both_empty, CONTEXT).value == 0.0


def test_unsegmented_scripts_are_one_token() -> None:
    assert f1(["三十八"], [["三十八分"]], CONTEXT).value == 0.0


def test_no_answer_scores_zero() -> None:
    assert exact_match([{"text": None}], [["the"]], CONTEXT).value == 0.0


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
        f1(predictions, references, CONTEXT)
