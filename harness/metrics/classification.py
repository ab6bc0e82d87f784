"""Accuracy and F1 over labels, each item having one label or a list of them.

Source: ``accuracy`` in google-research/xtreme ``evaluate.py``; ``f1_score`` (``average="weighted"`` and ``"macro"``)
and ``accuracy_score`` of scikit-learn. Weighted F1 is what Vyakarana (Patil et al., MRL 2021, section 4) reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from harness.metrics.metric import (
    Floats,
    MetricContext,
    SetMetric,
    field_of,
    item_metric,
    ratio_from_counts,
    unfit,
)
from harness.statistics.bootstrap import RowStatistic, ratio

_NO_CLASS = -1
"""A prediction that is none of the task's labels: wrong, and no class of its own."""


def _is_right(prediction: Any, reference: Any, index: int, context: MetricContext) -> float:
    label = field_of(prediction, "label", index)
    if label is not None and type(label) is not type(reference):
        expected = f"a label of the reference's type ({reference!r}, {type(reference).__name__})"
        raise unfit(index, expected, f"{label!r} ({type(label).__name__})")
    return float(label == reference)


def _mean_f1(totals: Floats, *, weighted: bool) -> Floats:
    """Return the mean F1 of the classes, by how often each is gold or plainly over those that occur; 0 without any.

    Shape (...) for column sums of right, predicted and gold labels, shape (..., 3 x classes).
    """
    right, predicted, gold = np.moveaxis(totals.reshape(*totals.shape[:-1], 3, -1), -2, 0)
    weights = gold if weighted else (predicted + gold > 0).astype(np.float64)
    of_class = 2 * right / np.maximum(predicted + gold, 1)
    return ratio((of_class * weights).sum(axis=-1), weights.sum(axis=-1))


weighted_f1_from_counts = RowStatistic(partial(_mean_f1, weighted=True))
"""The weighted F1 from the column sums of right, predicted and gold labels, or 0 without any gold."""
macro_f1_from_counts = RowStatistic(partial(_mean_f1, weighted=False))
"""The macro F1 from the column sums of right, predicted and gold labels, or 0 without any label."""


def _class_counts(predictions: Sequence[Any], references: Sequence[Any], context: MetricContext) -> Floats:
    """Return the labels of every item by class: shape (n, 3 x labels), right, predicted and gold ones."""
    labels = context.labels
    numbers = {label: number for number, label in enumerate(labels)}
    owners: list[int] = []
    gold: list[int] = []
    guessed: list[int] = []
    for index, (guesses, gold_labels) in enumerate(_label_lists(predictions, references)):
        unknown = [label for label in gold_labels if label not in numbers]
        if unknown:
            raise unfit(index, f"a gold label among {', '.join(labels) or 'no labels'}", repr(unknown[0]))
        owners += [index] * len(gold_labels)
        gold += [numbers[label] for label in gold_labels]
        guessed += [numbers.get(guess, _NO_CLASS) for guess in guesses]
    items, gold_class, guess_class = (np.array(values, dtype=np.int64) for values in (owners, gold, guessed))
    right_counts, predicted_counts, gold_counts = np.zeros((3, len(references), len(labels)))
    right, predicted = guess_class == gold_class, guess_class != _NO_CLASS
    np.add.at(right_counts, (items[right], gold_class[right]), 1)
    np.add.at(predicted_counts, (items[predicted], guess_class[predicted]), 1)
    np.add.at(gold_counts, (items, gold_class), 1)
    return np.concatenate([right_counts, predicted_counts, gold_counts], axis=1)


def _label_counts(predictions: Sequence[Any], references: Sequence[Any], context: MetricContext) -> Floats:
    """Return the (right, gold) labels of every item, shape (n, 2); the labels of the task need not be known."""
    counts = [
        (sum(guess == label for guess, label in zip(guesses, gold, strict=True)), len(gold))
        for guesses, gold in _label_lists(predictions, references)
    ]
    return np.array(counts, dtype=np.float64)


def _label_lists(
    predictions: Sequence[Any], references: Sequence[Any]
) -> Iterator[tuple[Sequence[Any], Sequence[str]]]:
    """Yield the predicted and the gold labels of every item, as lists; raises `ValueError` where they do not fit."""
    for index, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        if isinstance(reference, str):
            label = field_of(prediction, "label", index)
            if label is not None and not isinstance(label, str):
                raise unfit(index, "a label as the prediction", repr(label))
            yield [label], [reference]
            continue
        if isinstance(prediction, str | Mapping) or prediction is None:
            raise unfit(index, "a list of labels as the prediction", repr(prediction))
        if len(prediction) != len(reference):
            expected = f"{len(reference)} predicted labels, one for each gold label"
            raise unfit(index, expected, len(prediction))
        yield prediction, reference


accuracy = item_metric(_is_right)
"""The share of items whose predicted label equals the reference.

A prediction is a label or a mapping with the key ``label``; None means no answer and counts as wrong. A label is a
string or an integer, the same for both sides: raises `ValueError` when they differ in type, because ``"1"`` never
equals ``1`` and every item would silently be wrong.
"""
weighted_f1 = SetMetric(_class_counts, weighted_f1_from_counts)
"""The mean of the F1 of the classes, weighted by how often each is gold.

An item is a label or a list of labels (one a word); a prediction may be a mapping with the key ``label``. Anything that
is no label of the task (None, the tag of an unreadable answer) is wrong and forms no class. A class that is never
predicted and never right has F1 0. The counts have 3 columns a label of the task, in the order of its labels: right
ones, then predicted ones, then gold ones.

Raises `ValueError`, naming the item, where lists differ in length or a gold label is none of the task's.
"""
macro_f1 = SetMetric(_class_counts, macro_f1_from_counts)
"""The plain mean of the F1 of the classes that are gold or predicted; the rest is as in `weighted_f1`."""
label_accuracy = SetMetric(_label_counts, ratio_from_counts)
"""The share of labels that were predicted; arguments are those of `weighted_f1`, but for the labels of the task."""
