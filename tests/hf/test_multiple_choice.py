from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForMultipleChoice

from harness.data.records import MultipleChoiceExample
from harness.errors import DataError, TrainingError
from harness.models.capabilities import Choice, ChoosesBest, Head, HeadSpec

from .conftest import Options

SPEC = HeadSpec(head=Head.MULTIPLE_CHOICE)


def items(count: int, choices: int) -> list[MultipleChoiceExample]:
    wrong = ["sad", "bad", "no"]
    return [
        MultipleChoiceExample(
            id=str(number),
            context=["the cat", "the dog near the door"][number % 2],
            choices=tuple(
                "happy good" if place == number % choices else wrong[(number + place) % 3]
                for place in range(choices)
            ),
            label=number % choices,
        )
        for number in range(count)
    ]


def asked(examples: list[MultipleChoiceExample]) -> list[Choice]:
    return [Choice(context=one.context, choices=one.choices) for one in examples]


@pytest.mark.thorough
def test_two_stages_with_different_numbers_of_choices(bert: Any, fit_options: Options) -> None:
    first: Any = bert.fit(items(48, 3), items(9, 3), SPEC, fit_options("first"))
    head = first._session.network.classifier.weight.detach().clone()
    second: Any = first.fit(items(8, 2), [], SPEC, fit_options("second", epochs=1, learning_rate=1e-9))
    # A learning rate of nearly nothing shows that the head of the first stage is where the second begins.
    torch.testing.assert_close(second._session.network.classifier.weight, head, atol=1e-6, rtol=0)
    assert all(isinstance(one, ChoosesBest) for one in (first, second))
    test = [*items(6, 2), *items(6, 3)]
    scores = second.choose(asked(test))
    assert [len(row) for row in scores] == [2] * 6 + [3] * 6
    right = [int(np.argmax(row)) == one.label for row, one in zip(scores, test, strict=True)]
    assert np.mean(right) >= 0.9


def test_scores_are_those_of_transformers(with_head: Any, open_folder: Any) -> None:
    adapter = open_folder(with_head(AutoModelForMultipleChoice))
    item = Choice(context="The cat sat. What was the cause?", choices=("It was happy.", "猫", ""))
    (scores,) = adapter.choose([item])
    session = adapter._session
    batch = session.tokenizer([item.context] * 3, list(item.choices), padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = session.network(**{name: value.unsqueeze(0) for name, value in batch.items()}).logits[0]
    np.testing.assert_allclose(scores, logits, atol=2e-6)


def test_batches_and_empty_lists(with_head: Any, open_folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = with_head(AutoModelForMultipleChoice)
    many = asked([*items(5, 2), *items(5, 3)])
    many.insert(3, Choice(context="nothing to choose", choices=()))
    large = open_folder(folder, batch_tokens=9999).choose(many)
    monkeypatch.setattr("harness_hf.encoder.classification.CHUNK", 4)
    small = open_folder(folder, batch_tokens=1).choose(many)
    assert small[3] == ()
    for left, right in zip(small, large, strict=True):
        np.testing.assert_allclose(left, right, atol=2e-6)
    assert open_folder(folder).choose([]) == []


def test_examples_that_do_not_fit_are_named(bert: Any, fit_options: Options) -> None:
    good = items(4, 2)
    for label in (None, 2, -1):
        with pytest.raises(DataError, match="'odd' has the label"):
            bert.fit([*good, replace(good[0], id="odd", label=label)], [], SPEC, fit_options())
    with pytest.raises(TrainingError, match=r"same number of choices; these have \[2, 3\]"):
        bert.fit([*good, *items(3, 3)], [], SPEC, fit_options())
