"""Counts by cluster, from which the cluster bootstrap draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from harness.statistics import DRAWS, Interval, percentile_interval, resampled_sums
from harness_probing.problem import Numbers
from harness_probing.scores import METRICS, Counts, Floats, tally_scores

__all__ = ["ClusterTally"]

FIRST_ROOM = 1_024


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
        for place, layer in enumerate(self.layers):
            right, counted = self._right[:, place], self._predicted[:, place]
            for seed, own in enumerate(predicted[layer]):
                hits = own == gold
                np.add.at(counted[:, seed], (rows, own), 1)
                np.add.at(right[:, seed], (rows[hits], gold[hits]), 1)

    def clusters(self) -> list[str]:
        """Return the names of the clusters, in the order of the rows of `counts`."""
        return list(self._rows)

    def counts(self, layer: int) -> tuple[Counts, Counts, Counts]:
        """Return right and predicted, shape (clusters, seeds, classes), and gold, shape (clusters, classes)."""
        place, used = self.layers.index(layer), len(self._rows)
        return self._right[:used, place], self._predicted[:used, place], self._gold[:used]

    def intervals(self, layer: int, *, seed: int, draws: int = DRAWS) -> dict[str, Interval]:
        """Return the cluster-bootstrap interval of every score's mean over the seeds of the probes."""
        if len(self) < 2:
            reason = "one cluster" if len(self) else None
            return dict.fromkeys(METRICS, Interval(se=None, low=None, high=None, method=reason))
        right, predicted, gold = self.counts(layer)
        used, seeds, classes = right.shape
        # By name, so that the draws do not depend on the order in which a model answers.
        order = np.argsort(np.array(self.clusters()), kind="stable")
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
