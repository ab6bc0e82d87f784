"""Shared by both kinds: the fields of an item, probabilities of a fitted classifier, and vectors of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness import ContractError
from harness.data import Row
from harness.kinds import ReadContext, cluster_of, group_of, id_of, meta_of, text_of
from harness.metrics import Floats
from harness.models import Classifies, Embeds, TextInput


def item_fields(row: Row, number: int, context: ReadContext) -> dict[str, Any]:
    """Return the fields of a `ClassificationExample` but its label: id, cluster, group, meta, inputs and labels.

    Args:
        row: The row of the item.
        number: Its 1-based number in the file, its id where the row has none.
        context: The task and language that are read.
    """
    return {
        "id": id_of(row, number),
        "cluster": cluster_of(row, context),
        "group": group_of(row),
        "meta": meta_of(row),
        "inputs": {name: text_of(row, name, context) for name in context.inputs},
        "labels": context.labels,
    }


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


def text_vectors(adapter: Embeds, texts: Sequence[str]) -> Floats:
    """Return the vectors of texts, shape (n, d); raises `ContractError` for another number of them, or NaN."""
    vectors = np.asarray(adapter.embed(texts, side="query"), dtype=np.float64)
    if len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise ContractError(
            f"embed() returned {len(vectors)} vectors for {len(texts)} texts, or NaN in them."
        )
    return vectors
