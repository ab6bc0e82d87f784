"""Scores probes on a stream of test states: nothing of a sentence is kept but counts.

All probes of all problems read a block of sentences once. What stays are confusion counts of every probe, and for the
layers that are reported the counts of each cluster, from which the cluster bootstrap draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from harness.models import FloatArray
from harness_probing.fitting import FittedProbes
from harness_probing.problem import Numbers, ProbeItem
from harness_probing.scores import ClusterTally, Counts, confusion_counts
from harness_probing.states import checked_states

Predictions = Mapping[int, Numbers]
"""Layer number to class numbers, shape (seeds, positions), for the layers that are reported."""
Items = Sequence[tuple[str, ProbeItem]]
"""With the names of their problems."""


@dataclass(slots=True, kw_only=True)
class TestCounts:
    """The counts of the test items of one problem."""

    __test__ = False  # Not a test class, whatever its name.

    confusion: Counts
    """Shape (seeds, tasks, layers, gold, predicted)."""
    mix: Counts | None
    """Shape (gold, predicted)."""
    baselines: dict[str, Counts]
    """Shape (gold, predicted) each."""
    clusters: ClusterTally


class Evaluator:
    """Applies all probes to test sentences."""

    def __init__(self, probes: Sequence[FittedProbes], *, layers: Sequence[int], shift: int = 0) -> None:
        """Take the probes of all problems, the layers of the states that will come, and the first vector's position."""
        self.probes = {fitted.problem.name: fitted for fitted in probes}
        self.layers, self.shift = tuple(layers), shift
        self.counts = {name: _no_counts(fitted) for name, fitted in self.probes.items()}
        self._wide = {name: _wide(fitted) for name, fitted in self.probes.items()}

    def add(self, block: Sequence[tuple[FloatArray, Items]]) -> list[tuple[str, ProbeItem, Predictions]]:
        """Count the items of sentences, each given with its states of shape (layers, vectors, dimension).

        Returns the predictions of every item whose problem has probes; none for an item without positions. Raises
        `ContractError` for states that are not finite or of the wrong shape.
        """
        block = [(states, items) for states, items in block if items]
        if not block:
            return []
        for states, items in block:
            checked_states(states, len(self.layers), states.shape[1], f"test sentence {items[0][1].id!r}")
        stacked = np.concatenate([states for states, _ in block], axis=1, dtype=np.float32)
        starts = np.cumsum([0, *(states.shape[1] for states, _ in block)])
        outcomes: list[tuple[str, ProbeItem, Predictions]] = []
        for name, fitted in self.probes.items():
            placed = [
                (item, start - self.shift)
                for (_, items), start in zip(block, starts.tolist(), strict=False)
                for problem, item in items
                if problem == name
            ]
            rows = [start + position for item, start in placed for position in item.positions]
            predicted = self._counted(fitted, stacked, [item for item, _ in placed], rows) if rows else {}
            end = 0
            for item, _ in placed:
                span = slice(end, end := end + len(item.positions))
                outcomes.append((name, item, {layer: values[:, span] for layer, values in predicted.items()}))
        return outcomes

    def _counted(
        self, own: FittedProbes, states: FloatArray, items: Sequence[ProbeItem], rows: Sequence[int]
    ) -> Predictions:
        """Count the predictions of items whose vectors are in these rows; return those of layers that are reported."""
        counts, classes = self.counts[own.problem.name], len(own.problem.classes)
        gold: Numbers = np.concatenate([item.classes or (0,) * len(item.positions) for item in items]).astype(
            np.int64
        )
        types = [word for item in items for word in item.types]
        chosen = torch.as_tensor(states[:, rows], device=own.weight.device)
        predicted = self._predicted(own, chosen, gold, types)
        counts.clusters.add([item.cluster for item in items for _ in item.positions], gold, predicted)
        if own.mix is not None and counts.mix is not None:
            index = [self.layers.index(layer) for layer in own.layers]
            counts.mix += confusion_counts(gold, own.mix.predict(chosen[index]).cpu().numpy(), classes)
        for name, confusion in counts.baselines.items():
            guessed = own.baselines.predict(name, types, len(gold))
            np.add(confusion, confusion_counts(gold, guessed, classes), out=confusion)
        return predicted

    def _predicted(
        self, own: FittedProbes, states: torch.Tensor, gold: Numbers, types: Sequence[str]
    ) -> Predictions:
        counts = self.counts[own.problem.name]
        seeds, tasks, _, _, classes = own.weight.shape
        every = [np.broadcast_to(gold, (seeds, len(gold)))] + (
            [own.controls(types)] if own.controlled else []
        )
        expected = np.stack(every, axis=1)
        weight, bias = self._wide[own.problem.name]
        predictions = {}
        for index, layer in enumerate(own.layers):
            logits = torch.addmm(bias[index], states[self.layers.index(layer)], weight[index])
            predicted = logits.view(-1, seeds, tasks, classes).argmax(dim=-1).permute(1, 2, 0).cpu().numpy()
            counts.confusion[:, :, index] += confusion_counts(expected, predicted, classes)
            if layer in counts.clusters.layers:
                predictions[layer] = predicted[:, 0]
        return predictions


def _no_counts(own: FittedProbes) -> TestCounts:
    seeds, tasks, layers, _, classes = own.weight.shape
    last = own.layers[-1]
    # The published view takes the layer that is best on test, which is not known before the end.
    counted_layers = own.layers if own.settings.choose_on == "test" else tuple(sorted({own.best_layer, last}))
    return TestCounts(
        confusion=np.zeros((seeds, tasks, layers, classes, classes), dtype=np.int64),
        mix=None if own.mix is None else np.zeros((classes, classes), dtype=np.int64),
        baselines={name: np.zeros((classes, classes), dtype=np.int64) for name in own.baselines.names()},
        clusters=ClusterTally(layers=counted_layers, seeds=seeds, classes=classes),
    )


def _wide(own: FittedProbes) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the weights and biases of all probes of a layer side by side: the last axis is probes times classes."""
    seeds, tasks, layers, dimension, classes = own.weight.shape
    columns = seeds * tasks * classes
    weight = own.weight.permute(2, 3, 0, 1, 4).reshape(layers, dimension, columns).contiguous()
    return weight, own.bias.permute(2, 0, 1, 3).reshape(layers, columns).contiguous()
