"""Metrics of labels."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import accuracy_score, f1_score

from harness.metrics.classification import accuracy, label_accuracy, macro_f1, weighted_f1
from harness.metrics.metric import MetricContext

LABELS = ("Acc", "Acc,Gen", "Loc", "Nom", "never")
CONTEXT = MetricContext(language="hi", labels=LABELS)
PAIR = st.tuples(st.sampled_from(LABELS[:4]), st.sampled_from(LABELS[:4]))
SENTENCES = st.lists(st.lists(PAIR, max_size=6), min_size=1, max_size=12).filter(any)


def sides(sentences: list[list[tuple[str, str]]]) -> tuple[list[list[str]], list[list[str]]]:
    return (
        [[guess for guess, _ in own] for own in sentences],
        [[gold for _, gold in own] for own in sentences],
    )


@given(SENTENCES)
def test_words_are_scored_as_by_scikit_learn(sentences: list[list[tuple[str, str]]]) -> None:
    guesses, gold = sides(sentences)
    flat = [list(chain.from_iterable(side)) for side in (gold, guesses)]
    for average, metric in (("weighted", weighted_f1), ("macro", macro_f1)):
        wanted = f1_score(*flat, average=average, zero_division=0.0)
        assert metric(guesses, gold, CONTEXT).value == pytest.approx(wanted)
    assert label_accuracy(guesses, gold, CONTEXT).value == pytest.approx(accuracy_score(*flat))


@given(st.lists(PAIR, min_size=1, max_size=40))
def test_single_labels_are_scored_as_by_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    guesses, gold = [guess for guess, _ in pairs], [label for _, label in pairs]
    outputs = [{"label": guess, "scores": [1.0]} for guess in guesses]
    assert weighted_f1(outputs, gold, CONTEXT).value == pytest.approx(
        f1_score(gold, guesses, average="weighted", zero_division=0.0)
    )
    assert macro_f1(outputs, gold, CONTEXT).value == pytest.approx(
        f1_score(gold, guesses, average="macro", zero_division=0.0)
    )
    for metric in (label_accuracy, accuracy):
        assert metric(outputs, gold, CONTEXT).value == pytest.approx(accuracy_score(gold, guesses))
    items = accuracy(guesses, gold, CONTEXT).items
    assert items is not None and items.tolist() == [float(left == right) for left, right in pairs]


@given(SENTENCES)
def test_the_counts_of_a_sentence_are_its_own(sentences: list[list[tuple[str, str]]]) -> None:
    guesses, gold = sides(sentences)
    for metric in (weighted_f1, macro_f1, label_accuracy):
        whole = metric(guesses, gold, CONTEXT).counts
        apart = [metric([one], [other], CONTEXT).counts for one, other in zip(guesses, gold, strict=True)]
        np.testing.assert_array_equal(whole, np.concatenate([part for part in apart if part is not None]))


def test_counts_are_right_predicted_and_gold_ones() -> None:
    found = weighted_f1([["Nom", "Acc"], ["Loc"]], [["Nom", "Nom"], ["Loc"]], CONTEXT).counts
    assert found is not None
    right, predicted, gold = [0, 0, 0, 1, 0], [1, 0, 0, 1, 0], [0, 0, 0, 2, 0]
    assert found[0].tolist() == [*right, *predicted, *gold]
    assert found[1].tolist() == [0, 0, 1, 0, 0] * 3


def test_what_is_no_label_is_wrong_and_no_class() -> None:
    gold = ["Nom", "Acc", "Acc"]
    unread = [None, "?", "Acc"]
    known = f1_score(gold, ["?", "?", "Acc"], labels=["Nom", "Acc"], average="macro", zero_division=0.0)
    assert macro_f1(unread, gold, CONTEXT).value == pytest.approx(known)
    weighted = f1_score(gold, ["?", "?", "Acc"], average="weighted", zero_division=0.0)
    assert weighted_f1(unread, gold, CONTEXT).value == pytest.approx(weighted)
    assert label_accuracy(unread, gold, CONTEXT).value == pytest.approx(1 / 3)


def test_sentences_without_a_word_to_label() -> None:
    for metric in (weighted_f1, macro_f1, label_accuracy):
        assert metric([[]], [[]], CONTEXT).value == 0.0
        assert metric([[], ["Nom"]], [[], ["Nom"]], CONTEXT).value == 1.0


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        (["Nom"], ["Nom", "Acc"], "one prediction for each of the 2 references, found 1"),
        ([], [], "at least one item"),
        (
            [["Nom"]],
            [["Nom", "Acc"]],
            "Item 0: expected 2 predicted labels, one for each gold label, found 1",
        ),
        (["Nom", "Nom"], ["Nom", "Nomm"], "Item 1: expected a gold label among Acc, .*, found 'Nomm'"),
        (["Nom"], [["Nom"]], "Item 0: expected a list of labels as the prediction, found 'Nom'"),
        ([{"label": "Nom"}], [["Nom"]], "Item 0: expected a list of labels as the prediction"),
        ([None], [["Nom"]], "Item 0: expected a list of labels as the prediction, found None"),
        ([{"scores": [1.0]}], ["Nom"], "Item 0: expected a prediction with the key 'label', found 'scores'"),
        ([["Nom"]], ["Nom"], r"Item 0: expected a label as the prediction, found \['Nom'\]"),
    ],
)
def test_rejects_what_does_not_fit(predictions: list[Any], references: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        weighted_f1(predictions, references, CONTEXT)
    with pytest.raises(ValueError, match="expected a gold label among no labels, found 'a'"):
        macro_f1(["a"], ["a"], MetricContext(language="hi"))


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        (["a"], ["a", "b"], "one prediction for each of the 2 references, found 1"),
        ([], [], "at least one item"),
        (["a", "1"], ["a", 1], r"Item 1: .* found '1' \(str\)"),
        ([True], [1], r"Item 0: .* found True \(bool\)"),
        ([{"scores": [1.0]}], ["a"], "Item 0: expected a prediction with the key 'label', found 'scores'"),
    ],
)
def test_accuracy_rejects_what_does_not_fit(
    predictions: list[Any], references: list[Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        accuracy(predictions, references, CONTEXT)
    assert accuracy([{"label": 1}, {"label": None}, 1], [1, 1, 1], CONTEXT).value == pytest.approx(2 / 3)
