"""Accuracy over labels, of classification and of multiple choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.metrics.metric import MetricContext, MetricResult
from harness.metrics.pairing import check_pairs, field_of, mean_of_items

__all__ = ["accuracy"]

Label = str | int


def accuracy(predictions: Sequence[Any], references: Sequence[Label], context: MetricContext) -> MetricResult:
    """Return the share of items whose predicted label equals the reference; `items` holds 0.0 or 1.0.

    A prediction is a label or a mapping with the key ``label``; None means no answer and counts as
    wrong. A label is a string or an integer, the same for both sides: raises `ValueError` when they differ in
    type, because ``"1"`` never equals ``1`` and every item would silently be wrong.

    Source: ``accuracy`` in google-research/xtreme ``evaluate.py``.
    """
    check_pairs(predictions, references)
    labels = [field_of(prediction, "label", index) for index, prediction in enumerate(predictions)]
    for index, (label, reference) in enumerate(zip(labels, references, strict=True)):
        if label is not None and type(label) is not type(reference):
            raise ValueError(
                f"Item {index}: expected a label of the reference's type ({reference!r}, "
                f"{type(reference).__name__}), found {label!r} ({type(label).__name__})."
            )
    return mean_of_items(
        float(label == reference) for label, reference in zip(labels, references, strict=True)
    )
