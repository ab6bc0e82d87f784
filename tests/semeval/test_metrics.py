"""F1 over several labels is scikit-learn's, and the rank correlation is scipy's."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import f1_score

from harness.metrics import MetricContext
from harness_semeval.metrics import METRICS
from harness_semeval.multilabel import label_sets

MACRO, MICRO, SPEARMAN = METRICS
LABELS = ["anger", "disgust", "fear", "joy"]
CONTEXT = MetricContext(language="en", labels=label_sets(LABELS))


def drawn(seed: int, names: list[str], count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    gold, guess = generator.random((2, count, len(names))) < 0.3
    return gold, guess


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("annotated", [LABELS, ["anger", "fear", "joy"]])
def test_f1_is_that_of_scikit_learn(seed: int, annotated: list[str]) -> None:
    """A label without a column in a language is no class of it."""
    gold, guess = drawn(seed, annotated)
    gold[:, 0] &= seed != 1  # a label that is never gold
    guess[:, 0] &= seed not in (1, 2)
    names = np.array(annotated)
    references = [{"labels": names[row].tolist(), "annotated": annotated} for row in gold]
    predictions = [{"labels": [*names[row].tolist(), "disgust"]} for row in guess]
    if "disgust" in annotated:
        predictions = [{"labels": names[row].tolist()} for row in guess]
    for metric, average in ((MACRO, "macro"), (MICRO, "micro")):
        result = metric.compute(predictions, references, CONTEXT)
        expected = f1_score(gold, guess, average=average, zero_division=0)
        assert result.value == pytest.approx(expected, abs=1e-12)
        assert metric.from_counts is not None
        assert result.counts is not None
        assert metric.from_counts(result.counts.sum(axis=0)) == result.value


@pytest.mark.parametrize("steps", [3, 1000])
def test_rank_correlation_is_that_of_scipy(steps: int) -> None:
    """Also where many grades are equal."""
    generator = random.Random(steps)
    grades = [generator.randrange(steps) / steps for _ in range(200)]
    guesses = [round(grade + generator.gauss(0, 0.4), 1) for grade in grades]
    result = SPEARMAN.compute([{"grade": guess} for guess in guesses], grades, MetricContext(language="en"))
    assert result.value == pytest.approx(spearmanr(grades, guesses).statistic, abs=1e-12)


def test_equal_grades_have_no_correlation() -> None:
    predictions = [{"grade": 0.5}] * 4
    assert SPEARMAN.compute(predictions, [0.1, 0.2, 0.3, 0.4], MetricContext(language="en")).value == 0


def test_an_answer_without_a_list_is_a_fault() -> None:
    with pytest.raises(ValueError, match="Item 0: expected a list of labels"):
        MACRO.compute([{"labels": "joy"}], [{"labels": [], "annotated": LABELS}], CONTEXT)
