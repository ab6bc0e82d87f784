"""Weighted F1, macro F1 and accuracy of counts, as scikit-learn computes them, with intervals; and baselines.

The baselines need no model: the majority class, and the majority class of every word type.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from harness.statistics import DRAWS, Interval, percentile_interval, resampled_sums
from harness_probing.problem import Numbers, Targets

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.integer]
METRICS = ("weighted_f1", "macro_f1", "accuracy")
"""The published score first."""
FIRST_ROOM = 1_024
Keys = npt.NDArray[np.uint64]


def confusion_scores(confusion: Counts) -> Mapping[str, Floats]:
    """Return the scores of confusion counts of shape (..., gold classes, predicted classes): each of shape (...)."""
    right = np.diagonal(confusion, axis1=-2, axis2=-1)
    return tally_scores(right, confusion.sum(axis=-2), confusion.sum(axis=-1))


def tally_scores(
    right: Counts | Floats, predicted: Counts | Floats, gold: Counts | Floats
) -> Mapping[str, Floats]:
    """Return the scores of what every class was predicted; the arguments have shape (..., classes).

    As ``sklearn.metrics.f1_score`` with ``zero_division=0``: a class that is neither gold nor predicted is skipped
    of the macro average. NaN where there are no items.
    """
    right, predicted, gold = (np.asarray(counts, dtype=np.float64) for counts in (right, predicted, gold))
    present = predicted + gold > 0
    f1 = np.divide(2 * right, predicted + gold, out=np.zeros(np.shape(present)), where=present)
    total, classes = gold.sum(axis=-1), present.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "weighted_f1": (f1 * gold).sum(axis=-1) / total,
            "macro_f1": f1.sum(axis=-1) / classes,
            "accuracy": right.sum(axis=-1) / total,
        }


def confusion_counts(gold: Numbers, predicted: Numbers, classes: int) -> Counts:
    """Return confusion counts of class numbers of shape (..., n): shape (..., gold classes, predicted classes)."""
    shape = np.broadcast_shapes(gold.shape, predicted.shape)
    groups = np.arange(int(np.prod(shape[:-1]))).reshape(*shape[:-1], 1)
    codes = (groups * classes + gold) * classes + predicted
    counts = np.bincount(codes.ravel(), minlength=groups.size * classes * classes)
    return counts.reshape(*shape[:-1], classes, classes)


class ClusterTally:
    """How often each cluster has, gets, and rightly gets every class; grows with the clusters, not with the items."""

    def __init__(self, *, layers: Sequence[int], seeds: int, classes: int) -> None:
        self.layers = tuple(layers)
        """Numbers of the layers that are counted."""
        self._rows: dict[str, int] = {}
        self._gold = np.zeros((FIRST_ROOM, classes), dtype=np.int32)
        self._right = np.zeros((FIRST_ROOM, len(layers), seeds, classes), dtype=np.int32)
        self._predicted = np.zeros_like(self._right)

    def __len__(self) -> int:
        """Return how many clusters have been seen."""
        return len(self._rows)

    def add(self, clusters: Sequence[str], gold: Numbers, predicted: Mapping[int, Numbers]) -> None:
        """Count items.

        Args:
            clusters: Of each item, length n.
            gold: Class numbers, shape (n,).
            predicted: Layer number to class numbers, shape (seeds, n), for all of `layers`.
        """
        rows = np.array([self._rows.setdefault(name, len(self._rows)) for name in clusters], dtype=np.int64)
        self._make_room()
        np.add.at(self._gold, (rows, gold), 1)
        for column, layer in enumerate(self.layers):
            right, counted = self._right[:, column], self._predicted[:, column]
            for seed, guessed in enumerate(predicted[layer]):
                hits = guessed == gold
                np.add.at(counted[:, seed], (rows, guessed), 1)
                np.add.at(right[:, seed], (rows[hits], gold[hits]), 1)

    def counts(self, layer: int) -> tuple[Counts, Counts, Counts]:
        """Return right and predicted, shape (clusters, seeds, classes), and gold, shape (clusters, classes)."""
        column, used = self.layers.index(layer), len(self._rows)
        return self._right[:used, column], self._predicted[:used, column], self._gold[:used]

    def intervals(self, layer: int, *, seed: int, draws: int = DRAWS) -> dict[str, Interval]:
        """Return the cluster-bootstrap interval of every score's mean over the seeds of the probes."""
        if len(self) < 2:
            reason = "one cluster" if len(self) else None
            return dict.fromkeys(METRICS, Interval(method=reason))
        right, predicted, gold = self.counts(layer)
        used, seeds, classes = right.shape
        # By name, so that the draws do not depend on the order in which a model answers.
        order = np.argsort(np.array(list(self._rows)), kind="stable")
        sums = np.concatenate([right.reshape(used, -1), predicted.reshape(used, -1), gold], axis=1)[order]
        drawn = resampled_sums(sums.astype(np.float64), draws=draws, seed=seed)
        replicates = _mean_scores(drawn, seeds, classes)
        return {
            name: percentile_interval(replicates[name], method="cluster bootstrap", groups=used, seed=seed)
            for name in METRICS
        }

    def _make_room(self) -> None:
        while len(self._gold) < len(self._rows):
            self._gold = np.concatenate([self._gold, np.zeros_like(self._gold)])
            self._right = np.concatenate([self._right, np.zeros_like(self._right)])
            self._predicted = np.concatenate([self._predicted, np.zeros_like(self._predicted)])


def _mean_scores(sums: Floats, seeds: int, classes: int) -> dict[str, Floats]:
    """Return every score's mean over seeds of sums of right, predicted and gold counts: shape (draws,) each."""
    width = seeds * classes
    right = sums[:, :width].reshape(-1, seeds, classes)
    predicted = sums[:, width : 2 * width].reshape(-1, seeds, classes)
    gold = np.broadcast_to(sums[:, None, 2 * width :], right.shape)
    return {name: values.mean(axis=1) for name, values in tally_scores(right, predicted, gold).items()}


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
