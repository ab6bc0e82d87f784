"""Scores of confusion counts: weighted F1, macro F1 and accuracy, as scikit-learn computes them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

__all__ = ["METRICS", "Counts", "Floats", "confusion_scores", "tally_scores"]

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.integer]
METRICS = ("weighted_f1", "macro_f1", "accuracy")
"""The published score first."""


def confusion_scores(confusion: Counts) -> Mapping[str, Floats]:
    """Return the scores of confusion counts of shape (..., gold classes, predicted classes): each of shape (...)."""
    right = np.diagonal(confusion, axis1=-2, axis2=-1)
    return tally_scores(right, confusion.sum(axis=-2), confusion.sum(axis=-1))


def tally_scores(
    right: Counts | Floats, predicted: Counts | Floats, gold: Counts | Floats
) -> Mapping[str, Floats]:
    """Return the scores of what every class was predicted; the arguments have shape (..., classes).

    As ``sklearn.metrics.f1_score`` with ``zero_division=0``: a class that is neither gold nor predicted is skipped
    of the macro average. NaN where there are no items.
    """
    right, predicted, gold = (np.asarray(part, dtype=np.float64) for part in (right, predicted, gold))
    present = predicted + gold > 0
    f1 = np.divide(2 * right, predicted + gold, out=np.zeros(np.shape(present)), where=present)
    total, classes = gold.sum(axis=-1), present.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "weighted_f1": (f1 * gold).sum(axis=-1) / total,
            "macro_f1": f1.sum(axis=-1) / classes,
            "accuracy": right.sum(axis=-1) / total,
        }
