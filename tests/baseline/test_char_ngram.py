from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harness.data.records import (
    Answer,
    ClassificationExample,
    MultipleChoiceExample,
    SpanExample,
    TaggedSentence,
)
from harness.errors import CapabilityError, UnknownNameError
from harness.models.capabilities import Choice, Head, HeadSpec, SpanQuestion, TextInput
from harness.testing.examples import SENTENCES, head_spec, training_examples
from harness_baseline.model import Baseline

PAIR = HeadSpec(head=Head.CLASSIFICATION, labels=("no", "yes"), inputs=("a", "b"))
SENTIMENT = HeadSpec(head=Head.CLASSIFICATION, labels=("no", "yes"), inputs=("text",))
WORDS = [f"w{number}" for number in range(60)]


def overlap_pairs(count: int, seed: int, words: list[str]) -> list[ClassificationExample]:
    """Pairs that are labelled by whether the second text repeats words of the first."""
    generator = np.random.default_rng(seed)
    pairs = []
    for number in range(count):
        chosen = [str(word) for word in generator.permutation(words)[:8]]
        label = "yes" if number % 2 else "no"
        second = chosen[1:5] if label == "yes" else [str(word) for word in generator.permutation(words)[:4]]
        inputs = {"a": " ".join(chosen), "b": " ".join(second)}
        pairs.append(ClassificationExample(id=str(number), inputs=inputs, label=label))
    return pairs


def sentiments(positive: str, negative: str) -> list[ClassificationExample]:
    return [
        ClassificationExample(id=str(number), inputs={"text": f"{word} x{number}"}, label=label)
        for number, (word, label) in enumerate([(positive, "yes"), (negative, "no")] * 10)
    ]


def accuracy(model: Any, pairs: list[ClassificationExample]) -> float:
    inputs = [TextInput(text=pair.inputs["a"], text_pair=pair.inputs["b"]) for pair in pairs]
    best = model.classify(inputs, PAIR.labels).argmax(axis=1)
    return float(np.mean([PAIR.labels[index] == pair.label for index, pair in zip(best, pairs, strict=True)]))


def test_overlap_is_learnt_and_carries_over_to_another_script(fit: Any) -> None:
    model = fit("char-ngram", overlap_pairs(200, 1, WORDS), PAIR)
    assert accuracy(model, overlap_pairs(100, 2, WORDS)) > 0.9
    assert accuracy(model, overlap_pairs(100, 3, ["क" * size + "ल" for size in range(1, 61)])) > 0.9


def test_one_text_is_classified_by_its_words(fit: Any) -> None:
    model = fit("char-ngram", sentiments("good", "bad"), SENTIMENT)
    scores = model.classify([TextInput(text="good day"), TextInput(text="bad day")], SENTIMENT.labels)
    assert scores.argmax(axis=1).tolist() == [1, 0]


def test_a_label_that_was_not_learnt_is_named(fit: Any) -> None:
    model = fit("char-ngram", overlap_pairs(10, 1, WORDS), PAIR)
    with pytest.raises(UnknownNameError, match=r"'yess'.*'yes'"):
        model.classify([TextInput(text="a", text_pair="b")], ["yess"])


def test_the_second_stage_goes_on_from_the_first(fit: Any) -> None:
    asked = [TextInput(text="good")]
    first = fit("char-ngram", sentiments("good", "bad"), SENTIMENT)
    second = fit(first, sentiments("up", "down"), SENTIMENT)
    alone = fit("char-ngram", sentiments("up", "down"), SENTIMENT)
    kept, forgotten = (model.classify(asked, SENTIMENT.labels)[0] for model in (second, alone))
    assert kept[1] - kept[0] > 5 * abs(forgotten[1] - forgotten[0])


def test_tags_are_learnt_from_suffixes(fit: Any) -> None:
    train = [
        TaggedSentence(
            id=str(number), tokens=(f"b{number}ing", f"c{number}ed")[::order], tags=("G", "P")[::order]
        )
        for number in range(40)
        for order in (1, -1)
    ]
    model = fit("char-ngram", train, HeadSpec(head=Head.TAGGING))
    assert model.tag([["zooming"], [], ["played", "playing"]]) == [["G"], [], ["P", "G"]]


def test_choices_are_learnt_from_overlap(fit: Any) -> None:
    train = [
        MultipleChoiceExample(
            id=pair.id, context=pair.inputs["a"], choices=(pair.inputs["b"], "zz yy"), label=0
        )
        for pair in overlap_pairs(40, 1, WORDS)
        if pair.label == "yes"
    ]
    model = fit("char-ngram", train, HeadSpec(head=Head.MULTIPLE_CHOICE))
    first, second = model.choose(
        [Choice(context="k l m", choices=("q r", "l m")), Choice(context="", choices=())]
    )
    assert first[1] > first[0]
    assert second == ()


def test_spans_are_learnt_and_exact_in_any_script(fit: Any) -> None:
    train = []
    for number in range(60):
        context = f"Alpha{number} lives in town. The year of birth is {1900 + number} for all. Nothing else."
        answer = Answer(text=str(1900 + number), start=context.index(str(1900 + number)))
        train.append(
            SpanExample(
                id=str(number), question="What is the year of birth?", context=context, answers=(answer,)
            )
        )
    model = fit("char-ngram", train, HeadSpec(head=Head.SPAN_EXTRACTION))
    context = "😀 Beta lives in town e\u0301. The year of birth is 1875 for all 12 others."
    asked = SpanQuestion(id="1", question="What is the year of birth?", context=context)
    (answer_found,) = model.extract_spans([asked])
    assert answer_found.text == "1875"
    assert context[answer_found.start : answer_found.end] == "1875"


def test_vectors_are_those_of_the_n_gram_counts(open_baseline: Callable[..., Baseline]) -> None:
    model = open_baseline("char-ngram")
    one, same, near, far = model.embed(["Straße", "  STRASSE ", "Strasse!", "वर्षा"], side="query")
    assert one @ same == pytest.approx(1, abs=1e-6)
    assert one @ near > 0.6
    assert abs(one @ far) < 0.2
    composed, decomposed = model.embed(["é", unicodedata.normalize("NFD", "é")], side="passage")
    np.testing.assert_array_equal(composed, decomposed)


def test_vectors_do_not_depend_on_the_chunk(open_baseline: Callable[..., Baseline]) -> None:
    model = open_baseline("char-ngram", dimension="64")
    texts = [f"{text} {number}" for number in range(300) for text in SENTENCES]
    whole = model.embed(texts, side="query")
    np.testing.assert_array_equal(whole[1020:1030], model.embed(texts[1020:1030], side="query"))


def test_fitting_the_dual_encoder_changes_no_vector(fit: Any, open_baseline: Callable[..., Baseline]) -> None:
    head = Head.DUAL_ENCODER
    fitted = fit("char-ngram", training_examples(head), head_spec(head))
    before = open_baseline("char-ngram").embed(SENTENCES, side="query")
    np.testing.assert_array_equal(fitted.embed(SENTENCES, side="query"), before)


def test_text_to_text_is_rejected(fit: Any) -> None:
    with pytest.raises(CapabilityError, match="'text_to_text'"):
        fit("char-ngram", ["x"], HeadSpec(head=Head.TEXT_TO_TEXT))
