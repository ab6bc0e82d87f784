"""How attributes are distributed in the data of a language, whatever a system answers: dataset bias."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np

from harness.analysis.attributes import Attribute

__all__ = ["distribution"]

BINS: Final = 20


def distribution(attribute: Attribute) -> dict[str, Any]:
    """Return n, mean, quartiles and histogram of an attribute; mean and quartiles are None for names.

    The histogram has rows [low, high, count] (20 bins of equal width; one [value, value, count] each where there are
    no more values than that), or [value, count] for names, frequent ones first.
    """
    if not attribute.feature.continuous:
        counts = Counter(value for value in attribute.values if value is not None)
        ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        return {
            "n": counts.total(),
            "mean": None,
            "quartiles": None,
            "histogram": [list(pair) for pair in ordered],
        }
    values = np.asarray(attribute.values, dtype=np.float64)
    finite = values[np.isfinite(values)]
    if not len(finite):
        return {"n": 0, "mean": None, "quartiles": None, "histogram": []}
    distinct, numbers = np.unique(finite, return_counts=True)
    if len(distinct) <= BINS:
        histogram = [
            [value, value, count] for value, count in zip(distinct.tolist(), numbers.tolist(), strict=True)
        ]
    else:
        found, edges = np.histogram(finite, bins=BINS)
        bounds = edges.tolist()
        histogram = [
            [low, high, count] for low, high, count in zip(bounds, bounds[1:], found.tolist(), strict=False)
        ]
    return {
        "n": len(finite),
        "mean": float(finite.mean()),
        "quartiles": np.quantile(finite, [0.25, 0.5, 0.75]).tolist(),
        "histogram": histogram,
    }
