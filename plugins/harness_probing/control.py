"""Control tasks (Hewitt and Liang 2019, https://aclanthology.org/D19-1275): what a probe learns by heart.

Every word type gets one class at random, drawn from the classes' distribution in train, and every token of the type
carries it. A probe can only memorise it: selectivity is the score on the task minus that on the control task. For
problems of sentences the type is the sentence's text, so that sentences of the same text share a class.

A type's class depends on the type and the seed alone: not on the order of the types, nor on which split they are in.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from harness_probing.problem import Numbers

__all__ = ["control_classes", "type_keys"]

Keys = npt.NDArray[np.uint64]


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
    found = np.empty((len(seeds), len(keys)), dtype=np.int64)
    for row, seed in enumerate(seeds):
        mixed = _splitmix(keys ^ _splitmix(np.full(1, seed, dtype=np.uint64)))
        uniform = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
        found[row] = np.searchsorted(bounds, uniform, side="right")
    return found


def _splitmix(values: Keys) -> Keys:
    """Return well-mixed 64-bit numbers (Steele, Lea and Flood 2014, SplitMix64)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
