"""Scores of a fitted classifier as probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness import ContractError
from harness.metrics import Floats
from harness.models import Classifies, TextInput


def label_probabilities(
    adapter: Classifies, inputs: Sequence[Sequence[str]], labels: Sequence[str]
) -> Floats:
    """Return the softmax of a classifier's scores, shape (inputs, labels); log-probabilities stay what they are.

    Args:
        adapter: The fitted model.
        inputs: One or two texts each.
        labels: The names of its outputs.
    """
    texts = [TextInput(text=item[0], text_pair=item[1] if len(item) > 1 else None) for item in inputs]
    scores: Any = np.asarray(adapter.classify(texts, labels), dtype=np.float64)
    if scores.shape != (len(inputs), len(labels)) or not np.isfinite(scores).all():
        raise ContractError(
            f"classify() returned scores of shape {scores.shape}, or NaN in them; expected finite ones of shape "
            f"{(len(inputs), len(labels))}."
        )
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares
