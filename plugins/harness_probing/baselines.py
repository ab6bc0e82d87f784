"""Baselines of probes without a model: the majority class, and the majority class of every word type.

Two more baselines are models: a random encoder (an adapter with random weights) and the embedding layer, which is
layer 0 of every probed model.

Control tasks (Hewitt and Liang 2019, https://aclanthology.org/D19-1275) say what a probe learns by heart. Every word
type gets one class at random, drawn from the classes' distribution in train, and every token of the type carries it. A
probe can only memorise it: selectivity is the score on the task minus that on the control task. For problems of
sentences the type is the sentence's text, so that sentences of the same text share a class. A type's class depends on
the type and the seed alone: not on the order of the types, nor on which split they are in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from harness_probing.problem import Numbers, Targets

Keys = npt.NDArray[np.uint64]


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
    counts_by_type: defaultdict[str, Counter[int]] = defaultdict(Counter)
    if train.types:
        for word, number in zip(train.types, train.classes.tolist(), strict=True):
            counts_by_type[word][number] += 1
    by_type = {
        word: min(counts, key=lambda number: (-counts[number], number))
        for word, counts in counts_by_type.items()
    }
    return Baselines(majority=int(train.counts().argmax()), by_type=by_type)


def type_keys(types: Sequence[str]) -> Keys:
    """Return 64 bits of every type's BLAKE2b digest: shape (n,)."""
    digests = (blake2b(name.encode(), digest_size=8, person=b"probe type").digest() for name in types)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def control_classes(keys: Keys, distribution: Sequence[float], seeds: Sequence[int]) -> Numbers:
    """Return the control task's classes: shape (seeds, n).

    Args:
        keys: What `type_keys` returned, shape (n,).
        distribution: Share of every class in train; a class of share 0 is never drawn.
        seeds: One control task each.
    """
    shares = np.asarray(distribution, dtype=np.float64)
    bounds = np.cumsum(shares) / shares.sum()
    bounds[np.flatnonzero(shares)[-1] :] = 1.0
    classes = np.empty((len(seeds), len(keys)), dtype=np.int64)
    for row, seed in enumerate(seeds):
        mixed = _splitmix(keys ^ _splitmix(np.full(1, seed, dtype=np.uint64)))
        uniform = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
        classes[row] = np.searchsorted(bounds, uniform, side="right")
    return classes


def _splitmix(values: Keys) -> Keys:
    """Return well-mixed 64-bit numbers (Steele, Lea and Flood 2014, SplitMix64)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
