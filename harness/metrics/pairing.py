"""Predictions paired with their references: the checks, means and sums that every family of metrics shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from harness.metrics.metric import Floats, MetricContext, MetricFunction, MetricResult


def check_pairs(predictions: Sequence[Any], references: Sequence[Any]) -> None:
    """Raise `ValueError` unless there is one prediction for each of at least one reference."""
    if len(predictions) != len(references):
        raise ValueError(
            f"Expected one prediction for each of the {len(references)} references, found {len(predictions)}."
        )
    if not references:
        raise ValueError("A metric needs at least one item, found none.")


def field_of(prediction: Any, name: str, index: int) -> Any:
    """Return ``prediction[name]`` of a prediction that is a mapping, and the prediction itself otherwise.

    Model outputs are mappings that hold more than the answer (scores, offsets); files of predictions hold the
    bare answer. Raises `ValueError`, naming the item's 0-based `index`, when a mapping has no such field.
    """
    if not isinstance(prediction, Mapping):
        return prediction
    if name not in prediction:
        keys = ", ".join(sorted(map(repr, prediction))) or "no keys"
        raise ValueError(f"Item {index}: expected a prediction with the key {name!r}, found {keys}.")
    return prediction[name]


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


def reference_texts(reference: Any, index: int) -> Sequence[str]:
    """Return the gold texts of one item; raises `ValueError` where there is none, or a bare string."""
    if isinstance(reference, str) or not reference:
        raise ValueError(
            f"Item {index}: expected a list of at least one reference text, found {reference!r}."
        )
    texts: Sequence[str] = reference
    return texts


def mean_of_items(scores: Iterable[float]) -> MetricResult:
    """Return the result of a metric that is the plain mean of item scores in [0, 1]."""
    items = np.fromiter(scores, dtype=np.float64)
    return MetricResult(value=float(items.mean()), items=items)


def item_metric(score: Callable[[Any, Any, int, MetricContext], float]) -> MetricFunction:
    """Return the metric that is the mean of item scores in [0, 1].

    Args:
        score: From a prediction, its reference, the 0-based index of the item and the context to the item's score.
    """

    def compute(
        predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
    ) -> MetricResult:
        check_pairs(predictions, references)
        return mean_of_items(
            score(prediction, reference, index, context)
            for index, (prediction, reference) in enumerate(zip(predictions, references, strict=True))
        )

    return compute


def set_metric(
    count: Callable[[Sequence[Any], Sequence[Any], MetricContext], Floats],
    from_counts: Callable[[Floats], float],
) -> MetricFunction:
    """Return the set-level metric that is computed from sums of counts over all items.

    Args:
        count: From predictions, references and the context to the counts of every item, shape (n, k).
        from_counts: From the column sums of the counts to the value.
    """

    def compute(
        predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
    ) -> MetricResult:
        check_pairs(predictions, references)
        counts = count(predictions, references, context)
        return MetricResult(value=from_counts(counts.sum(axis=0)), counts=counts)

    return compute


def ratio_from_counts(totals: Floats) -> float:
    """Return the first sum divided by the second; 0 where that is 0."""
    return float(totals[0] / totals[1]) if totals[1] else 0.0
