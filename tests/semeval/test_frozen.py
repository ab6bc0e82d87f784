"""Regressions on frozen vectors are scikit-learn's, and serve cells with and without their own training split."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import harness
from harness import ContractError, DataError
from harness.data import Row
from harness.kinds import ReadContext
from harness_semeval import frozen, multilabel

LABELS = ("anger", "fear", "joy")
SETS = multilabel.label_sets(LABELS)
[METHOD] = frozen.METHODS


def example(number: int, text: str, **marks: int) -> Any:
    context = ReadContext(owner="t", language="en", split="train", inputs=("text",), labels=SETS)
    row = Row(fields={"id": str(number), "text": text, **marks}, path="file", line=number)
    return multilabel.KIND.example(row, number, context)


class Words:
    """Counts three words, and how often it is asked."""

    def __init__(self) -> None:
        self.calls = 0

    def embed(self, texts: Sequence[str], *, side: str) -> Any:
        self.calls += 1
        return np.array([[text.count(word) for word in LABELS] for text in texts], dtype=np.float32)


def cell(train: Sequence[Any], cache: dict[str, Any]) -> Any:
    return SimpleNamespace(
        spec=SimpleNamespace(task="t", label_names=SETS),
        learning=SimpleNamespace(data="train-en", split=lambda name: list(train)),
        cache=cache,
    )


TRAIN = [example(1, "joy joy", anger=0, joy=1), example(2, "anger", anger=1, joy=0)] * 20
TEST = [example(3, "joy fear"), example(4, "anger joy")]


def test_regressions_are_those_of_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(80, 6)) * [1, 5, 0.1, 1, 1, 0] + 3
    marks = (vectors @ generator.normal(size=(6, 2)) + generator.normal(size=(80, 2)) > [2, 4]).astype(float)
    marks[:30, 1] = np.nan  # a label that a part of the items has no value for
    fitted = frozen.fit_labels(vectors, marks).probabilities(vectors)
    features = (vectors - vectors.mean(axis=0)) / np.where(vectors.std(axis=0) > 0, vectors.std(axis=0), 1)
    for column in range(2):
        known = ~np.isnan(marks[:, column])
        peer = LogisticRegression(C=1, tol=1e-8, max_iter=1000).fit(features[known], marks[known, column])
        assert fitted[:, column] == pytest.approx(peer.predict_proba(features)[:, 1], abs=2e-3)


def test_labels_are_learned_from_the_vectors_and_kept_for_further_cells() -> None:
    model, cache = Words(), dict[str, Any]()
    first = METHOD.predict(model, TEST, cell(TRAIN, cache))
    assert [prediction.output["labels"] for prediction in first] == [["joy"], ["anger"]]
    # Nothing was annotated for fear, so it is never predicted.
    assert [prediction.output["scores"][1] for prediction in first] == [0, 0]
    assert model.calls == 2
    assert METHOD.predict(model, TEST, cell([], cache)) == first
    assert model.calls == 3  # the items alone


def test_without_labelled_items_there_is_nothing_to_learn_from() -> None:
    with pytest.raises(DataError, match="no labelled item"):
        METHOD.predict(Words(), TEST, cell([example(1, "joy")], {}))


def test_vectors_that_are_no_numbers_are_a_fault() -> None:
    class Broken:
        def embed(self, texts: Sequence[str], *, side: str) -> Any:
            return np.full((len(texts), 2), np.nan)

    with pytest.raises(ContractError, match="NaN"):
        METHOD.predict(Broken(), TEST, cell(TRAIN, {}))


@pytest.mark.thorough
def test_a_model_that_embeds_runs_brighter(install_plugin: Any, tmp_path: Path) -> None:
    folder = Path(__file__).parents[1] / "running"
    install_plugin("asking_adapter", (folder / "asking_adapter.py").read_text(encoding="utf-8"))
    run = harness.evaluate(
        "brighter:en+de",
        "asks:embeds",
        method="embed",
        protocols="frozen",
        data="sample",
        output=tmp_path / "run",
    )
    views = {cell.language: cell.view for cell in run.cells if cell.status == "ok"}
    assert views["de"]["probe_train"] == "en"  # German has no training split in the sample
    assert "probe_train" not in views["en"]
