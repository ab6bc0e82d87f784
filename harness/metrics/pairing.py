"""Predictions paired with their references: the checks and the mean that every family of metrics shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from harness.metrics.metric import Floats, MetricResult

__all__ = ["check_pairs", "field_of", "mean_of_items", "ratio_from_counts"]


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


def mean_of_items(scores: Iterable[float]) -> MetricResult:
    """Return the result of a metric that is the plain mean of item scores in [0, 1]."""
    items = np.fromiter(scores, dtype=np.float64)
    return MetricResult(value=float(items.mean()), items=items)


def ratio_from_counts(totals: Floats) -> float:
    """Return the first sum divided by the second; 0 where that is 0."""
    return float(totals[0] / totals[1]) if totals[1] else 0.0
