"""Scores of a predicted answer text against one or more gold texts, given a language's normaliser."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from harness.metrics.metric import MetricResult
from harness.metrics.pairing import check_pairs, field_of, mean_of_items

__all__ = ["AnswerScore", "answer_text", "bag_f1", "best_over_references", "exact_match"]

AnswerScore = Callable[[str, str], float]
"""A score in [0, 1] of two normalised texts, whose tokens are separated by spaces."""


def answer_text(prediction: Any, index: int) -> str | None:
    """Return the text of one predicted answer: a string, or a mapping with the key ``text``.

    None means a question without an answer, which the published scripts give 0. Raises `ValueError`,
    naming the item's 0-based `index`, for anything else.
    """
    text = field_of(prediction, "text", index)
    if text is not None and not isinstance(text, str):
        raise ValueError(
            f"Item {index}: expected an answer text, found {text!r} of type {type(text).__name__}."
        )
    return text


def bag_f1(prediction: str, reference: str) -> float:
    """Return the F1 of the two bags of tokens; 0 without overlap, so also where both texts are empty.

    Source: ``f1_score`` in the SQuAD v1.1 and MLQA v1 evaluation scripts (identical in both).
    """
    predicted, gold = prediction.split(), reference.split()
    overlap = sum((Counter(predicted) & Counter(gold)).values())
    if overlap == 0:
        return 0.0
    precision, recall = overlap / len(predicted), overlap / len(gold)
    return 2 * precision * recall / (precision + recall)


def exact_match(prediction: str, reference: str) -> float:
    """Return 1.0 where the two normalised texts are equal, also where both are empty, and 0.0 elsewhere."""
    return float(prediction == reference)


def best_over_references(
    predictions: Sequence[Any],
    references: Sequence[Sequence[str]],
    normalise: Callable[[str], str],
    score: AnswerScore,
) -> MetricResult:
    """Return the mean over questions of the best `score` over the question's references.

    Source: ``metric_max_over_ground_truths`` in the SQuAD v1.1 and MLQA v1 evaluation scripts. Raises
    `ValueError` when a question has no reference, or has a bare string where a list of texts is expected.
    """
    check_pairs(predictions, references)
    scores = []
    for index, (prediction, texts) in enumerate(zip(predictions, references, strict=True)):
        if isinstance(texts, str) or not texts:
            raise ValueError(
                f"Item {index}: expected a list of at least one reference text, found {texts!r}."
            )
        text = answer_text(prediction, index)
        if text is None:
            scores.append(0.0)
        else:
            normalised = normalise(text)
            scores.append(max(score(normalised, normalise(reference)) for reference in texts))
    return mean_of_items(scores)
