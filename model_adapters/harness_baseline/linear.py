"""Linear models over hashed features, fitted by scikit-learn's stochastic gradient descent.

Mapping features to columns by a hash follows Weinberger et al. (2009), "Feature Hashing for Large Scale Multitask
Learning".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction import FeatureHasher
from sklearn.linear_model import SGDClassifier

from harness import TrainingError
from harness.models import FloatArray, TrainingSettings
from harness_baseline.state import Weights

COLUMNS = 1 << 18
"""Number of columns that features are hashed into."""

MOST_PASSES = 5
FEWEST_ROWS = 20_000
"""Rows that a fit sees, with repetition: a few dozen examples teach too little in a few passes."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Settings that decide a fit besides its rows.

    Of the training settings, the epochs are used: rounded up, and held between 1 and `MOST_PASSES`, because these
    models have converged by then. Learning rate, batch size and number of steps are for neural networks.
    """

    settings: TrainingSettings
    seed: int
    start: Weights | None = None
    """The weights of an earlier training stage."""

    def passes(self, rows: int) -> int:
        """Return how often the rows are visited."""
        epochs = min(max(math.ceil(self.settings.epochs), 1), MOST_PASSES)
        return max(epochs, min(-(-FEWEST_ROWS // rows), 100))


def hash_features(rows: Iterable[Sequence[str]]) -> Any:
    """Return the sparse matrix of shape (rows, COLUMNS) that counts the named features of every row."""
    rows = list(rows)
    if not rows:
        return sparse.csr_array((0, COLUMNS), dtype=np.float32)
    hasher = FeatureHasher(COLUMNS, input_type="string", alternate_sign=False, dtype=np.float32)
    return hasher.transform(rows)


def fit_linear(rows: Any, targets: Sequence[int] | Integers, outputs: int, training: Training) -> Weights:
    """Return the weights of a logit for each of `outputs` targets against the others, or of target 1 where it is 1.

    Raises `TrainingError` where a weight is not finite.
    """
    classes = np.arange(max(outputs, 2))
    # A row without features for every target lets scikit-learn fit one that the data do not have.
    rows = sparse.vstack([rows, sparse.csr_array((len(classes), COLUMNS), dtype=np.float32)], format="csr")
    targets = np.concatenate([np.asarray(targets, dtype=np.int64), classes])
    model = SGDClassifier(
        loss="log_loss",
        alpha=1e-5,
        learning_rate="constant",
        eta0=0.05,
        average=True,
        max_iter=training.passes(len(targets)),
        tol=None,
        random_state=training.seed,
    )
    if training.start is None:
        model.fit(rows, targets)
    else:
        start = [_one_if_two(weight) for weight in (training.start.coefficients.T, training.start.intercepts)]
        model.fit(rows, targets, coef_init=start[0].astype(np.float64), intercept_init=start[1])
    coefficients, intercepts = model.coef_.T, model.intercept_
    if outputs == 2:  # scikit-learn fits one logit, that of the second label against the first
        coefficients, intercepts = (
            np.hstack([-coefficients, coefficients]) / 2,
            np.outer([-0.5, 0.5], intercepts),
        )
    weights = Weights(
        coefficients=coefficients.astype(np.float32), intercepts=intercepts.reshape(-1).astype(np.float32)
    )
    if not (np.isfinite(weights.coefficients).all() and np.isfinite(weights.intercepts).all()):
        raise TrainingError("The training of the baseline diverged: a weight is not finite.")
    return weights


def _one_if_two(weights: FloatArray) -> FloatArray:
    """Return the difference of two outputs as one output, and other weights as they are."""
    return weights[1:] - weights[:1] if len(weights) == 2 else weights


def score(rows: Any, weights: Weights) -> FloatArray:
    """Return the logits of shape (rows, outputs)."""
    logits: FloatArray = np.asarray(rows @ weights.coefficients + weights.intercepts, dtype=np.float32)
    return logits
