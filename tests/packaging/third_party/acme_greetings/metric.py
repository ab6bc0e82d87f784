"""How many of the rude greetings were found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.metrics import Metric, MetricContext, MetricResult


def _rude_recall(
    predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
) -> MetricResult:
    found = np.array([prediction["label"] == "rude" for prediction in predictions])
    rude = np.array([reference == "rude" for reference in references])
    counts = np.stack([found & rude, rude], axis=1).astype(np.float64)
    return MetricResult(value=_from_counts(counts.sum(axis=0)), counts=counts)


def _from_counts(sums: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    return float(sums[0] / sums[1]) if sums[1] else 0.0


RUDE_RECALL = Metric(
    name="rude_recall",
    compute=_rude_recall,
    kinds=frozenset({"sequence_classification"}),
    description="Share of the rude items that were found.",
    source="This package.",
    from_counts=_from_counts,
)
