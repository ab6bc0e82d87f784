"""What a model's probe must beat, without a model: the majority class, and the majority class of every word type.

Two more baselines are models: a random encoder (an adapter with random weights) and the embedding layer, which is
layer 0 of every probed model.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from harness_probing.problem import Numbers, Targets

__all__ = ["MODEL_BASELINES", "Baselines", "fit_baselines"]

MODEL_BASELINES = ("random encoder", "embedding layer 0")
"""Those that come from an adapter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baselines:
    """Predicts from what train has; ties go to the lower class number."""

    majority: int
    by_type: Mapping[str, int] = field(repr=False)
    """Word type to its most frequent class; empty where types are not known."""

    def names(self) -> tuple[str, ...]:
        """Return which baselines there are."""
        return ("majority", "type_majority") if self.by_type else ("majority",)

    def predict(self, name: str, types: Sequence[str], count: int) -> Numbers:
        """Return the predictions of a baseline for `count` items: shape (count,); an unseen type gets the majority."""
        if name == "majority":
            return np.full(count, self.majority, dtype=np.int64)
        return np.array([self.by_type.get(word, self.majority) for word in types], dtype=np.int64)


def fit_baselines(train: Targets) -> Baselines:
    """Return the baselines of a train split."""
    found: defaultdict[str, Counter[int]] = defaultdict(Counter)
    if train.types:
        for word, number in zip(train.types, train.classes.tolist(), strict=True):
            found[word][number] += 1
    by_type = {
        word: min(counts, key=lambda number: (-counts[number], number)) for word, counts in found.items()
    }
    return Baselines(majority=int(train.counts().argmax()), by_type=by_type)
