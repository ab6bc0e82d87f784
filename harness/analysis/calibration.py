"""How far the confidence of a classifier is its accuracy, and which labels it takes for which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from harness.data.features import Items

Floats = npt.NDArray[np.float64]
BINS: Final = 10
_CLASSIFYING: Final = {"sequence_classification", "multiple_choice"}
_ROUNDING: Final = 1e-3


def probabilities(scores: Floats) -> Floats:
    """Return the probabilities of the labels, shape (n, labels), rows of sum 1.

    Scores that are probabilities already stay; others (logits, log-probabilities) go through a softmax.
    """
    if (scores >= 0).all() and (np.abs(scores.sum(axis=1) - 1) <= _ROUNDING).all():
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def calibration_rows(items: Items) -> list[dict[str, Any]]:
    """Return the confidence and accuracy of ten bins of equal width, and the expected calibration error.

    ECE = sum over bins of n_bin / n * |accuracy - confidence| (Naeini et al. 2015; Guo et al. 2017, arXiv 1706.04599,
    equation 3); the confidence of an item is the probability of its label. Empty bins have a row with n = 0. No rows at
    all for kinds and methods without scores of all labels, and where fewer than all items have them.
    """
    scored = _scores(items)
    if scored is None:
        return []
    confidence = probabilities(scored).max(axis=1)
    right = np.array(
        [
            prediction["label"] == gold
            for prediction, gold in zip(items.predictions, items.references, strict=True)
        ],
        dtype=np.float64,
    )
    # Bins are closed on the right, as intervals of attributes are.
    bins = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
    counts = np.bincount(bins, minlength=BINS)
    sure = np.bincount(bins, weights=confidence, minlength=BINS)
    true = np.bincount(bins, weights=right, minlength=BINS)
    error = float(np.abs(true - sure).sum() / len(bins))
    return [
        {
            "bin": number,
            "low": number / BINS,
            "high": (number + 1) / BINS,
            "n": int(count),
            "confidence": float(sure[number] / count) if count else None,
            "accuracy": float(true[number] / count) if count else None,
            "ece": error,
        }
        for number, count in enumerate(counts.tolist())
    ]


def _scores(items: Items) -> Floats | None:
    if items.kind not in _CLASSIFYING or not items.labels:
        return None
    scores = [
        prediction.get("scores")
        if isinstance(prediction, Mapping) and prediction.get("label") is not None
        else None
        for prediction in items.predictions
    ]
    if any(item_scores is None or len(item_scores) != len(items.labels) for item_scores in scores):
        return None
    matrix = np.array(scores, dtype=np.float64)
    return matrix if len(matrix) and np.isfinite(matrix).all() else None


def confusion_rows(items: Items) -> list[dict[str, Any]]:
    """Return the number of items by gold and predicted label, zeros too; None means an unreadable answer.

    For bare tags (parts of speech) the items are tokens. No rows for kinds without labels of items or tokens.
    """
    if items.kind in _CLASSIFYING:
        answers = [
            prediction["label"] if isinstance(prediction, Mapping) else prediction
            for prediction in items.predictions
        ]
        counts = Counter(zip(items.references, answers, strict=True))
    elif items.kind == "token_tagging" and not any(label[:2] == "B-" for label in items.labels):
        counts = Counter()
        for gold, predicted in zip(items.references, items.predictions, strict=True):
            counts.update(zip(gold, predicted, strict=True))
    else:
        return []
    occurring = {label for pair in counts for label in pair}
    labels = [*items.labels, *sorted(label for label in occurring - set(items.labels) if label is not None)]
    columns = [*labels, *([None] if None in occurring else [])]
    return [
        {"gold": gold, "predicted": predicted, "n": counts[gold, predicted]}
        for gold in labels
        for predicted in columns
    ]
