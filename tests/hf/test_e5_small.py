"""Checks with real weights that a result means something."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.data.records import ClassificationExample
from harness.models.capabilities import EmbedOptions, FitOptions, Head, HeadSpec, TextInput

pytestmark = pytest.mark.models


def test_translations_are_near_each_other(e5_small: Path, open_folder: Any) -> None:
    adapter = open_folder(e5_small)
    same = [
        "How do I reset my password?",
        "Wie setze ich mein Passwort zurück?",
        "मैं अपना पासवर्ड कैसे रीसेट करूँ?",
        "如何重置我的密码?",
    ]
    other = ["The cat sat on the mat.", "Das Wetter ist heute schön."]
    vectors = adapter.embed([*same, *other], side="query")
    similarity = vectors @ vectors.T
    assert similarity[:4, :4].min() > 0.84
    assert similarity[:4, 4:].max() < 0.80


def test_frozen_tatoeba_german(e5_small: Path, open_folder: Any, data_root: Path) -> None:
    """Frozen, mean-pooled top-1 was seen at 96 for German; the first 300 pairs keep the test short."""
    folder = data_root / "tatoeba"
    english = (folder / "tatoeba.deu-eng.eng").read_text(encoding="utf-8").splitlines()
    german = (folder / "tatoeba.deu-eng.deu").read_text(encoding="utf-8").splitlines()
    adapter = open_folder(e5_small)
    queries = adapter.embed(english[:300], side="query")
    candidates = adapter.embed(german, side="query")
    accuracy = np.mean(np.argmax(queries @ candidates.T, axis=1) == np.arange(300))
    assert accuracy >= 0.94
    middle = EmbedOptions(layer="xtreme_r")
    lower = adapter.embed(english[:300], side="query", options=middle)
    chance = 1 / len(german)
    found = np.argmax(lower @ adapter.embed(german[:300], side="query", options=middle).T, axis=1)
    assert np.mean(found == np.arange(300)) > 100 * chance


@pytest.mark.slow
def test_english_training_carries_over(
    e5_small: Path, open_folder: Any, fit_options: Callable[..., FitOptions]
) -> None:
    """Sentiment learnt from English templates is read off other languages: zero-shot transfer."""
    good, bad = ["wonderful", "excellent", "great", "lovely"], ["terrible", "awful", "horrible", "boring"]
    things = ["film", "book", "meal", "hotel", "song", "game", "trip", "story"]
    frames = ["The {} was {}.", "I thought the {} was {}.", "What a {}, it was {}!", "This {} is {}."]
    spec = HeadSpec(head=Head.CLASSIFICATION, labels=("negative", "positive"), inputs=("text",))
    train = [
        ClassificationExample(
            id=f"{thing}-{word}-{number}",
            inputs={"text": frame.format(thing, word)},
            label="positive" if word in good else "negative",
        )
        for thing in things
        for word in (*good, *bad)
        for number, frame in enumerate(frames)
    ]
    options = fit_options(learning_rate=1e-4, epochs=1, batch_size=8, freeze_embeddings=True)
    fitted = open_folder(e5_small).fit(train, [], spec, options)
    test = {
        "Der Film war wunderbar.": 1,
        "Das Essen war schrecklich.": 0,
        "Фильм был прекрасный.": 1,
        "Книга была ужасная.": 0,
        "यह फ़िल्म बहुत अच्छी थी।": 1,
        "यह किताब बहुत खराब थी।": 0,
        "这部电影太棒了。": 1,
        "这顿饭太难吃了。": 0,
        "Filamu ilikuwa nzuri sana.": 1,
        "Kitabu kilikuwa kibaya sana.": 0,
    }
    scores = fitted.classify([TextInput(text=text) for text in test], spec.labels)
    assert np.mean(scores.argmax(axis=1) == list(test.values())) >= 0.8
