from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from seqeval.metrics import accuracy_score
from sklearn.metrics import f1_score
from transformers import AutoModelForTokenClassification

from harness.data.records import TaggedSentence
from harness.errors import AdapterError, DataError, TrainingError
from harness.models.capabilities import Head, HeadSpec, Tags
from harness_hf.encoder.classification import IGNORED, prepare_tagging, token_f1

from .conftest import Options

LEXICON = {"the": "DET", "cat": "NOUN", "dog": "NOUN", "slept": "VERB", "sat": "VERB", ".": "PUNCT", "": "X"}
LABELS = ("DET", "NOUN", "PUNCT", "VERB", "X")
SPEC = HeadSpec(head=Head.TAGGING, labels=LABELS)


def sentences(count: int, length: int = 7) -> list[TaggedSentence]:
    random = np.random.default_rng(0)
    words = list(LEXICON)
    chosen = [[words[index] for index in random.integers(0, len(words), length)] for _ in range(count)]
    return [
        TaggedSentence(id=str(number), tokens=tuple(row), tags=tuple(LEXICON[word] for word in row))
        for number, row in enumerate(chosen)
    ]


@pytest.mark.thorough
def test_fitting_learns_and_long_sentences_are_rejoined(encoder: Any, fit_options: Options) -> None:
    fitted = encoder.fit(sentences(60), sentences(12, 30), SPEC, fit_options(epochs=4, max_length=16))
    assert isinstance(fitted, Tags)
    long = sentences(3, 90)
    tags = fitted.tag([one.tokens for one in long])
    assert [len(row) for row in tags] == [90] * 3
    assert accuracy_score([list(one.tags or ()) for one in long], tags) >= 0.95


def test_training_windows_carry_the_tags_of_their_words(bert: Any) -> None:
    (one,) = sentences(1, 25)
    data = prepare_tagging(bert._session, [one], [], LABELS, 12)
    assert len(data.train) > 1
    tags = [LABELS[number] for feature in data.train for number in feature.targets["labels"]]
    assert tuple(tags) == one.tags
    batch = data.collate(list(data.train))
    assert batch["labels"].shape == batch["input_ids"].shape
    for feature, row in zip(data.train, batch["labels"], strict=True):
        assert [position for position, value in enumerate(row) if value != IGNORED] == feature.targets[
            "positions"
        ]
        assert row[feature.targets["positions"]].tolist() == feature.targets["labels"]


def test_tags_are_read_at_the_first_piece(with_head: Any, open_folder: Any) -> None:
    labels = [f"T{number}" for number in range(9)]
    adapter = open_folder(with_head(AutoModelForTokenClassification, labels))
    words = ["The", "Katze", "sitzt", "unbelievable", "mat", "."]
    (tags,) = adapter.tag([words])
    session = adapter._session
    batch = session.tokenizer(words, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        chosen = session.network(**batch).logits[0].argmax(dim=-1)
    ids = batch.word_ids()
    assert tags == [labels[int(chosen[ids.index(number)])] for number in range(len(words))]


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.text(max_size=6) | st.just("cat" * 50), max_size=90), max_size=3))
def test_one_tag_for_every_token(with_head: Any, open_folder: Any, batch: list[list[str]]) -> None:
    if not hasattr(test_one_tag_for_every_token, "adapter"):
        folder = with_head(AutoModelForTokenClassification, list(LABELS))
        test_one_tag_for_every_token.adapter = open_folder(folder)  # type: ignore[attr-defined]
    tags = test_one_tag_for_every_token.adapter.tag(batch)  # type: ignore[attr-defined]
    assert [len(row) for row in tags] == [len(sentence) for sentence in batch]
    assert {tag for row in tags for tag in row} <= set(LABELS)


def test_tags_do_not_depend_on_batches(
    with_head: Any, open_folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = with_head(AutoModelForTokenClassification, [f"T{number}" for number in range(9)])
    batch = [one.tokens for length in (1, 9, 40) for one in sentences(4, length)]
    large = open_folder(folder, batch_tokens=9999).tag(batch)
    monkeypatch.setattr("harness_hf.encoder.classification.SENTENCE_CHUNK", 5)
    assert open_folder(folder, batch_tokens=1).tag(batch) == large
    assert open_folder(folder).tag([]) == []


def test_scores_that_are_not_finite_are_an_error(with_head: Any, open_folder: Any) -> None:
    adapter = open_folder(with_head(AutoModelForTokenClassification, list(LABELS)))
    with torch.no_grad():
        adapter._session.network.classifier.weight.fill_(float("inf"))
    with pytest.raises(AdapterError, match="not finite"):
        adapter.tag([["cat"]])


@pytest.mark.parametrize("outside", [-1, 0])
def test_the_selection_score_is_scikit_learns(outside: int) -> None:
    random = np.random.default_rng(2)
    gold = random.integers(0, 4, (20, 9))
    predicted = np.where(random.random((20, 9)) < 0.5, gold, random.integers(0, 4, (20, 9)))
    padded = gold.copy()
    padded[:, 7:] = IGNORED
    labels = [label for label in range(4) if label != outside]
    expected = f1_score(gold[:, :7].ravel(), predicted[:, :7].ravel(), labels=labels, average="micro")
    assert token_f1(predicted, padded, outside) == pytest.approx(expected)
    if outside == -1:
        assert expected == pytest.approx(np.mean(gold[:, :7] == predicted[:, :7]))


def test_examples_that_do_not_fit_are_named(bert: Any, fit_options: Options) -> None:
    good = sentences(4)
    odd = replace(good[0], id="odd", tags=("DET",))
    with pytest.raises(DataError, match="'odd' has 7 tokens and 1 tags"):
        bert.fit([*good, odd], [], SPEC, fit_options())
    with pytest.raises(DataError, match="'odd' has 7 tokens and none tags"):
        bert.fit(good, [replace(odd, tags=None)], SPEC, fit_options())
    with pytest.raises(DataError, match="'odd' has the tag 'ADJ'"):
        bert.fit([*good, replace(odd, tags=("ADJ",) * 7)], [], SPEC, fit_options())
    with pytest.raises(TrainingError, match="at least two labels"):
        bert.fit(good, [], HeadSpec(head=Head.TAGGING), fit_options())
    with pytest.raises(TrainingError, match="no training examples"):
        bert.fit([replace(good[0], tokens=(), tags=())], [], SPEC, fit_options())
