"""Multilabel classification with frozen embeddings: a logistic regression per label, fitted on the training split.

It is L2-regularised like scikit-learn's ``LogisticRegression(C=1)``, on standardised features, one label against the
rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from harness import DataError
from harness.data import Prediction
from harness.kinds import Method, MethodContext
from harness.metrics import Floats
from harness.models import Capability, Embeds
from harness_semeval.classification import text_vectors
from harness_semeval.multilabel import NAME, MultilabelExample, base_labels, label_output, members


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRegressions:
    """The fitted regressions of all labels."""

    mean: Floats
    """Shape (d,): of the features of the training items; so is `scale`, their standard deviation."""
    scale: Floats
    weights: Floats
    """Shape (d + 1, labels): the last row is the intercept."""

    def probabilities(self, vectors: Floats) -> Floats:
        """Return the probability of every label, shape (n, labels)."""
        features = (vectors - self.mean) / self.scale
        logits: Floats = features @ self.weights[:-1] + self.weights[-1]
        return 1 / (1 + np.exp(-logits))


def fit_labels(vectors: Floats, marks: Floats) -> LabelRegressions:
    """Return the regressions of vectors, shape (n, d), on marks, shape (n, labels): 1, 0, or NaN where unknown."""
    mean, scale = vectors.mean(axis=0), vectors.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    features = (vectors - mean) / scale
    weights = [_fit_label(features[~np.isnan(column)], column[~np.isnan(column)]) for column in marks.T]
    return LabelRegressions(mean=mean, scale=scale, weights=np.stack(weights, axis=1))


def _fit_label(features: Floats, marks: Floats) -> Floats:
    """Return the weights of one label; one that no training item has is never predicted."""
    from scipy.optimize import minimize
    from scipy.special import expit

    size = features.shape[1]
    if not marks.any():
        return np.append(np.zeros(size), -np.inf)

    def loss(weights: Floats) -> tuple[float, Floats]:
        logits = features @ weights[:-1] + weights[-1]
        errors = expit(logits) - marks
        penalty = float(weights[:-1] @ weights[:-1]) / 2
        gradient = np.append(features.T @ errors + weights[:-1], errors.sum())
        return float((np.logaddexp(0, logits) - marks * logits).sum()) + penalty, gradient

    weights: Floats = minimize(loss, np.zeros(size + 1), jac=True, method="L-BFGS-B").x
    return weights


def _vectors(adapter: Embeds, examples: Sequence[MultilabelExample]) -> Floats:
    return text_vectors(adapter, [" ".join(example.inputs.values()) for example in examples])


def _regressions(adapter: Embeds, context: MethodContext) -> LabelRegressions:
    """Return the regressions of a cell, fitted once for all cells with the same training items."""
    key = f"{NAME} {context.learning.data}"
    if key not in context.cache:
        examples = [example for example in context.learning.split("train") if example.label is not None]
        if not examples:
            raise DataError(f"{context.spec.task}: the training split has no labelled item.")
        names = base_labels(context.spec.label_names)
        marks = [
            [float(name in members(example.label)) if name in example.annotated else np.nan for name in names]
            for example in examples
        ]
        context.cache[key] = fit_labels(_vectors(adapter, examples), np.array(marks))
    regressions: LabelRegressions = context.cache[key]
    return regressions


def _predict(adapter: Any, examples: Sequence[MultilabelExample], context: MethodContext) -> list[Prediction]:
    shares = _regressions(adapter, context).probabilities(_vectors(adapter, examples))
    names = base_labels(context.spec.label_names)
    return [
        Prediction(id=example.id, output=label_output(names, row))
        for example, row in zip(examples, shares.tolist(), strict=True)
    ]


METHODS: Final = (
    Method(
        name="embed",
        kind=NAME,
        requires=Capability.EMBEDS,
        protocols=frozenset({"frozen"}),
        predict=_predict,
        splits=frozenset({"train"}),
    ),
)
