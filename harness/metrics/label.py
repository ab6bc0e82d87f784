"""F1 over classes and accuracy of labels, each item having one label or a list of them.

Source: ``f1_score`` (``average="weighted"`` and ``"macro"``) and ``accuracy_score`` of scikit-learn. Weighted F1 is
what Vyakarana (Patil et al., MRL 2021, section 4) reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.metrics.metric import Floats, MetricContext, MetricResult
from harness.metrics.pairing import check_pairs, field_of, ratio_from_counts

__all__ = [
    "label_accuracy",
    "macro_f1",
    "macro_f1_from_counts",
    "weighted_f1",
    "weighted_f1_from_counts",
]

_NO_CLASS = -1
"""A prediction that is none of the task's labels: wrong, and no class of its own."""


def weighted_f1(
    predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
) -> MetricResult:
    """Return the mean of the F1 of the classes, weighted by how often each is gold.

    An item is a label or a list of labels (one a word); a prediction may be a mapping with the key ``label``. Anything
    that is no label of the task (None, the tag of an unreadable answer) is wrong and forms no class. A class that is
    never predicted and never right has F1 0. `counts` has 3 columns a label of the task, in the order of its labels:
    right ones, then predicted ones, then gold ones.

    Raises `ValueError`, naming the item, where lists differ in length or a gold label is none of the task's.
    """
    counts = _class_counts(predictions, references, context.labels)
    return MetricResult(value=weighted_f1_from_counts(counts.sum(axis=0)), counts=counts)


def macro_f1(predictions: Sequence[Any], references: Sequence[Any], context: MetricContext) -> MetricResult:
    """Return the plain mean of the F1 of the classes that are gold or predicted; the rest is as in `weighted_f1`."""
    counts = _class_counts(predictions, references, context.labels)
    return MetricResult(value=macro_f1_from_counts(counts.sum(axis=0)), counts=counts)


def label_accuracy(
    predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
) -> MetricResult:
    """Return the share of labels that were predicted; `counts` has the columns (right, labels).

    Arguments and errors are those of `weighted_f1`, except that the labels of the task need not be known.
    """
    pairs = _pairs(predictions, references)
    counts = np.array(
        [
            (sum(guess == label for guess, label in zip(guesses, gold, strict=True)), len(gold))
            for guesses, gold in pairs
        ],
        dtype=np.float64,
    )
    return MetricResult(value=ratio_from_counts(counts.sum(axis=0)), counts=counts)


def weighted_f1_from_counts(totals: Floats) -> float:
    """Return the weighted F1 from the column sums of right, predicted and gold labels, or 0 without any gold."""
    right, predicted, gold = totals.reshape(3, -1)
    return float((_f1(right, predicted, gold) * gold).sum() / gold.sum()) if gold.any() else 0.0


def macro_f1_from_counts(totals: Floats) -> float:
    """Return the macro F1 from the column sums of right, predicted and gold labels, or 0 without any label."""
    right, predicted, gold = totals.reshape(3, -1)
    occurring = predicted + gold > 0
    return float(_f1(right, predicted, gold)[occurring].mean()) if occurring.any() else 0.0


def _f1(right: Floats, predicted: Floats, gold: Floats) -> Floats:
    return 2 * right / np.maximum(predicted + gold, 1)


def _class_counts(predictions: Sequence[Any], references: Sequence[Any], labels: Sequence[str]) -> Floats:
    """Return the labels of every item by class: shape (n, 3 x labels), right, predicted and gold ones."""
    numbers = {label: number for number, label in enumerate(labels)}
    guessed: list[int] = []
    gold: list[int] = []
    sizes: list[int] = []
    for index, (guesses, wanted) in enumerate(_pairs(predictions, references)):
        unknown = [label for label in wanted if label not in numbers]
        if unknown:
            raise ValueError(
                f"Item {index}: expected a gold label among {', '.join(labels) or 'no labels'}, found {unknown[0]!r}."
            )
        gold += [numbers[label] for label in wanted]
        guessed += [numbers.get(guess, _NO_CLASS) for guess in guesses]
        sizes.append(len(wanted))
    owners = np.repeat(np.arange(len(sizes)), sizes)
    wanted_class, guess_class = np.array(gold, dtype=np.int64), np.array(guessed, dtype=np.int64)
    right = guess_class == wanted_class
    made = guess_class != _NO_CLASS
    shape = (len(sizes), len(labels))
    return np.concatenate(
        [
            _table(owners[right], wanted_class[right], shape),
            _table(owners[made], guess_class[made], shape),
            _table(owners, wanted_class, shape),
        ],
        axis=1,
    )


def _table(owners: npt.NDArray[np.int64], classes: npt.NDArray[np.int64], shape: tuple[int, int]) -> Floats:
    cells = np.bincount(owners * shape[1] + classes, minlength=shape[0] * shape[1])
    return cells.reshape(shape).astype(np.float64)


def _pairs(
    predictions: Sequence[Any], references: Sequence[Any]
) -> list[tuple[Sequence[Any], Sequence[str]]]:
    """Return the predicted and the gold labels of every item, as lists; raises `ValueError` where they do not fit."""
    check_pairs(predictions, references)
    pairs: list[tuple[Sequence[Any], Sequence[str]]] = []
    for index, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        if isinstance(reference, str):
            pairs.append(([_single(prediction, index)], [reference]))
            continue
        if isinstance(prediction, str | Mapping) or prediction is None:
            raise ValueError(
                f"Item {index}: expected a list of labels as the prediction, found {prediction!r}."
            )
        if len(prediction) != len(reference):
            raise ValueError(
                f"Item {index}: expected {len(reference)} predicted labels, one for each gold label, found "
                f"{len(prediction)}."
            )
        pairs.append((prediction, reference))
    return pairs


def _single(prediction: Any, index: int) -> Any:
    label = field_of(prediction, "label", index)
    if label is not None and not isinstance(label, str):
        raise ValueError(f"Item {index}: expected a label as the prediction, found {label!r}.")
    return label
