from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.data.records import ClassificationExample, MultipleChoiceExample, TaggedSentence
from harness.models.capabilities import Choice, Head, HeadSpec, SpanQuestion, TextInput
from harness.testing.examples import head_spec, training_examples


def test_majority_label_has_the_highest_share(fit: Any) -> None:
    train = [
        ClassificationExample(id=str(number), inputs={"text": "x"}, label=label)
        for number, label in enumerate(["a", "b", "b", "b"])
    ]
    model = fit("majority", train, HeadSpec(head=Head.CLASSIFICATION, labels=("a", "b", "c")))
    scores = model.classify([TextInput(text="anything"), TextInput(text="")], ["c", "b", "a"])
    np.testing.assert_array_equal(scores, [[0, 0.75, 0.25]] * 2)


def test_majority_tag_is_that_of_all_tokens(fit: Any) -> None:
    train = [TaggedSentence(id="1", tokens=("a", "b", "c"), tags=("X", "Y", "Y"))]
    assert fit("majority", train, HeadSpec(head=Head.TAGGING)).tag([["a", "q"], []]) == [["Y", "Y"], []]


def test_majority_choice_is_a_position(fit: Any) -> None:
    train = [
        MultipleChoiceExample(id=str(number), context="x", choices=("a", "b"), label=label)
        for number, label in enumerate([1, 1, 0])
    ]
    model = fit("majority", train, HeadSpec(head=Head.MULTIPLE_CHOICE))
    two, three = model.choose(
        [Choice(context="", choices=("p", "q")), Choice(context="", choices=("p", "q", "r"))]
    )
    assert two == pytest.approx((1 / 3, 2 / 3))
    assert three == pytest.approx((1 / 3, 2 / 3, 0))


@pytest.mark.parametrize(
    ("context", "answer"),
    [
        ("  Anna lives here. He does not.", "Anna lives here"),
        ("राम घर में है। वह सोता है।", "राम घर में है"),
        ("他在家。她不在。", "他在家"),
        ("no end", "no end"),
        (" \n", ""),
    ],
)
def test_majority_span_is_the_first_sentence(fit: Any, context: str, answer: str) -> None:
    head = Head.SPAN_EXTRACTION
    model = fit("majority", training_examples(head), head_spec(head))
    (span,) = model.extract_spans([SpanQuestion(id="1", question="?", context=context)])
    assert span.text == answer
    assert (span.start == -1) if not answer else (context[span.start : span.end] == answer)
