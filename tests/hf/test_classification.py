from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification

from harness.data.records import ClassificationExample
from harness.errors import AdapterError, CapabilityError, DataError, TrainingError
from harness.models.capabilities import Classifies, Head, HeadSpec, TextInput

from .conftest import Options

SPEC = HeadSpec(head=Head.CLASSIFICATION, labels=("bad", "good"), inputs=("text",))
PAIR = HeadSpec(head=Head.CLASSIFICATION, labels=("different", "same"), inputs=("first", "second"))


def sentiment(count: int, offset: int = 0) -> list[ClassificationExample]:
    fillers = ["the cat", "the dog near the door", "the mat", "one two three", "a blue door"]
    words = {"good": ["good", "happy"], "bad": ["bad", "sad"]}
    return [
        ClassificationExample(
            id=str(number),
            inputs={"text": f"{fillers[number % 5]} {words[label][number // 2 % 2]} {fillers[number % 3]}"},
            label=label,
        )
        for number in range(offset, offset + count)
        for label in [("good", "bad")[number % 2]]
    ]


def pairs(count: int) -> list[ClassificationExample]:
    """Pairs whose label depends on the second text only."""
    colours = ["red", "green", "blue"]
    return [
        ClassificationExample(
            id=str(number),
            inputs={"first": colours[number % 3], "second": colours[number // 3 % 3]},
            label="same" if number // 3 % 3 == 2 else "different",
        )
        for number in range(count)
    ]


def inputs_of(examples: list[ClassificationExample]) -> list[TextInput]:
    return [TextInput(text=example.inputs["text"]) for example in examples]


@pytest.mark.thorough
def test_fitting_learns_and_classifies(encoder: Any, fit_options: Options) -> None:
    fitted = encoder.fit(sentiment(64), sentiment(16, 64), SPEC, fit_options(epochs=8, learning_rate=3e-3))
    assert isinstance(fitted, Classifies)
    test = sentiment(20, 200)
    scores = fitted.classify(inputs_of(test), SPEC.labels)
    assert scores.shape == (20, 2)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(np.exp(scores).sum(axis=1), 1, atol=1e-5)
    predicted = [SPEC.labels[index] for index in scores.argmax(axis=1)]
    assert np.mean([label == example.label for label, example in zip(predicted, test, strict=True)]) >= 0.9


def test_scores_are_those_of_transformers(with_head: Any, open_folder: Any) -> None:
    folder = with_head(AutoModelForSequenceClassification, ["same", "different"])
    adapter = open_folder(folder)
    texts = [("The cat sat.", "Der Hund schläft."), ("a", "猫坐在门边"), ("one two " * 30, "three " * 40)]
    scores = adapter.classify([TextInput(text=a, text_pair=b) for a, b in texts], ["different", "same"])
    session = adapter._session
    for row, (first, second) in zip(scores, texts, strict=True):
        batch = session.tokenizer(
            first, second, truncation="longest_first", max_length=64, return_tensors="pt"
        )
        assert batch["input_ids"].shape[1] <= 64
        with torch.no_grad():
            logits = session.network(**batch).logits[0]
        np.testing.assert_allclose(row, torch.log_softmax(logits, -1)[[1, 0]], atol=2e-6)


def test_columns_follow_the_names_of_labels(with_head: Any, open_folder: Any) -> None:
    adapter = open_folder(
        with_head(AutoModelForSequenceClassification, ["ENTAILMENT", "neutral", "Contradiction"])
    )
    inputs = [TextInput(text="The cat sat.", text_pair="The dog slept.")]
    asked = ["contradiction", "entailment", "neutral"]
    scores = adapter.classify(inputs, asked)
    turned = adapter.classify(inputs, ["neutral", "contradiction", "entailment"])
    np.testing.assert_array_equal(scores[:, [2, 0, 1]], turned)
    with torch.no_grad():
        session = adapter._session
        batch = session.tokenizer("The cat sat.", "The dog slept.", return_tensors="pt")
        logits = torch.log_softmax(session.network(**batch).logits[0], -1)
    np.testing.assert_allclose(scores[0], logits[[2, 0, 1]], atol=2e-6)


@pytest.mark.parametrize(
    "asked",
    [["yes", "no"], ["same"], ["same", "different", "neither"], ["same", "same"], ["LABEL_0", "LABEL_1"]],
)
def test_other_label_names_are_rejected(with_head: Any, open_folder: Any, asked: list[str]) -> None:
    adapter = open_folder(with_head(AutoModelForSequenceClassification, ["same", "different"]))
    for inputs in ([], [TextInput(text="x")]):
        with pytest.raises(CapabilityError) as caught:
            adapter.classify(inputs, asked)
        assert all(repr(label) in str(caught.value) for label in [*asked, "same", "different"])


def test_single_texts_and_pairs_may_be_mixed_and_batched(with_head: Any, open_folder: Any) -> None:
    folder = with_head(AutoModelForSequenceClassification, ["same", "different"])
    inputs = [
        TextInput(text="cat " * (number % 9), text_pair=None if number % 3 else "dog") for number in range(25)
    ]
    small = open_folder(folder, batch_tokens=1).classify(inputs, ["same", "different"])
    large = open_folder(folder, batch_tokens=9999).classify(inputs[::-1], ["same", "different"])[::-1]
    np.testing.assert_allclose(small, large, atol=2e-6)
    assert open_folder(folder).classify([], ["same", "different"]).shape == (0, 2)


def test_the_second_text_is_read(bert: Any, fit_options: Options) -> None:
    fitted = bert.fit(pairs(90), [], PAIR, fit_options(epochs=4))
    inputs = [TextInput(text=one.inputs["first"], text_pair=one.inputs["second"]) for one in pairs(9)]
    scores = fitted.classify(inputs, PAIR.labels)
    assert [PAIR.labels[index] for index in scores.argmax(axis=1)] == [one.label for one in pairs(9)]


def test_a_saved_fit_answers_as_the_fitted_model(bert: Any, fit_options: Options, open_folder: Any) -> None:
    options = fit_options(epochs=1)
    fitted = bert.fit(sentiment(32), [], SPEC, options)
    inputs = inputs_of(sentiment(20, 100))
    scores = fitted.classify(inputs, SPEC.labels)
    loaded = bert.load_fit(options.directory, SPEC)
    np.testing.assert_array_equal(loaded.classify(inputs, SPEC.labels), scores)
    assert loaded.identity() == fitted.identity()
    as_model = open_folder(options.directory)
    np.testing.assert_array_equal(as_model.classify(inputs, ["good", "bad"]), scores[:, ::-1])
    assert fitted.embed(["x"], side="query").shape == (1, 32)


def test_fits_of_other_labels_are_not_loaded(bert: Any, fit_options: Options, tmp_path: Path) -> None:
    options = fit_options(epochs=1)
    bert.fit(sentiment(16), [], SPEC, options)
    other = HeadSpec(head=Head.CLASSIFICATION, labels=("good", "bad"), inputs=("text",))
    with pytest.raises(
        AdapterError, match=r"\['bad', 'good'\]; expected classification with \['good', 'bad'\]"
    ):
        bert.load_fit(options.directory, other)
    with pytest.raises(AdapterError, match="expected tagging"):
        bert.load_fit(options.directory, HeadSpec(head=Head.TAGGING, labels=SPEC.labels))
    with pytest.raises(AdapterError, match="holds no finished fit"):
        bert.load_fit(tmp_path / "nothing", SPEC)
    (options.directory / "harness_fit.json").write_text('{"head": "classification"}')
    with pytest.raises(AdapterError, match="not a fit record"):
        bert.load_fit(options.directory, SPEC)


def test_examples_that_do_not_fit_are_named(bert: Any, fit_options: Options) -> None:
    good = sentiment(8)
    odd = ClassificationExample(id="odd-7", inputs={"text": "x"}, label="neutral")
    with pytest.raises(DataError, match="'odd-7' has the label 'neutral'; expected one of"):
        bert.fit([*good, odd], [], SPEC, fit_options())
    with pytest.raises(DataError, match="'odd-7' has the label 'neutral'"):
        bert.fit(good, [odd], SPEC, fit_options())
    with pytest.raises(DataError, match="'0' has no field 'premise'"):
        bert.fit(
            good,
            [],
            HeadSpec(head=Head.CLASSIFICATION, labels=SPEC.labels, inputs=("premise",)),
            fit_options(),
        )
    with pytest.raises(TrainingError, match="no training examples"):
        bert.fit([], good, SPEC, fit_options())
    for spec in (
        HeadSpec(head=Head.CLASSIFICATION, labels=("only",), inputs=("text",)),
        HeadSpec(head=Head.CLASSIFICATION, labels=SPEC.labels, inputs=()),
    ):
        with pytest.raises(TrainingError, match="needs two labels and one or two input fields"):
            bert.fit(good, [], spec, fit_options())
    with pytest.raises(CapabilityError, match="text_to_text head"):
        bert.fit(good, [], HeadSpec(head=Head.TEXT_TO_TEXT), fit_options())
