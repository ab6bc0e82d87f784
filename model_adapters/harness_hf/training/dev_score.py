"""The score of a network on the dev set, the same number in all processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load, save

from harness import TrainingError
from harness_hf.inference.batching import is_shortage
from harness_hf.training.batches import Feature, HeadTraining, cut
from harness_hf.training.processes import TrainingProcesses
from harness_hf.training.step import Precision

__all__ = ["DevSet"]

IGNORED = -100
"""What fills up rows of targets and decisions that differ in width."""


class DevSet:
    """The dev examples of a training, each of which one process looks at."""

    def __init__(self, data: HeadTraining, *, processes: TrainingProcesses, precision: Precision) -> None:
        # Order does not matter to the score, and like lengths need less padding.
        self._features = sorted(data.validation, key=len)
        self._data = data
        self._processes = processes
        self._precision = precision

    def score(self, network: Any) -> float:
        """Return the score on all of the dev set; the network is left as it was.

        Batches are the same for any number of processes. Raises `TrainingError` in all of them where it fails
        in any.
        """
        own: dict[str, Any] = {}
        with self._processes.together():
            own = self._decide_share(network)
        found: dict[str, Any] = {}
        for message in self._processes.gather_bytes(save(own)):
            found.update(load(message))
        value = 0.0
        with self._processes.together():
            value = self._score(found)
        return self._processes.exchange([value])[0][0]

    def _score(self, found: dict[str, Any]) -> float:
        columns = [
            _stack([found[name] for name in sorted(found) if name.startswith(f"{column}.")])
            for column in range(1 + len(self._data.label_names))
        ]
        gold = tuple(columns[1:]) if len(columns) > 2 else columns[1]
        return float(self._data.score(columns[0], gold))

    def _decide_share(self, network: Any) -> dict[str, Any]:
        """Return decisions and targets of this process's batches, named ``column.batch``."""
        batches = cut(range(len(self._features)), self._data.evaluation_batch)
        found: dict[str, Any] = {}
        training = network.training
        network.eval()
        try:
            for number in range(self._processes.rank, len(batches), self._processes.count):
                columns = self._decide(network, [self._features[index] for index in batches[number]])
                for column, values in enumerate(columns):
                    found[f"{column}.{number:08}"] = np.ascontiguousarray(values)
        finally:
            network.train(training)
        return found

    def _decide(self, network: Any, features: Sequence[Feature]) -> list[Any]:
        """Return what is kept of the logits of some examples, and each of their targets."""
        data = self._data
        batch = self._precision.place(data.collate(list(features)))
        labels = [batch.pop(name) for name in data.label_names]
        try:
            with torch.no_grad(), self._precision.context():
                outputs = network(**batch)
                decided = data.decide(_logits(outputs), labels[0] if len(labels) == 1 else tuple(labels))
        except Exception as error:
            if not is_shortage(error):
                raise
            decided = None
        if decided is not None:
            return [_array(decided), *map(_array, labels)]
        if len(features) == 1:
            raise TrainingError(
                f"A dev example of {len(features[0])} pieces does not fit into the memory.",
                hint="Choose a recipe with a smaller max_length.",
            )
        if self._precision.device.type == "cuda":
            torch.cuda.empty_cache()
        half = len(features) // 2
        parts = [self._decide(network, features[:half]), self._decide(network, features[half:])]
        return [_stack(column) for column in zip(*parts, strict=True)]


def _logits(outputs: Any) -> Any:
    if "logits" in outputs:
        return outputs["logits"]
    return outputs["start_logits"], outputs["end_logits"]


def _array(values: torch.Tensor) -> Any:
    return (values.float() if values.is_floating_point() else values).cpu().numpy()


def _stack(arrays: Sequence[Any]) -> Any:
    """Return the rows of all arrays in one, the narrower ones filled up."""
    if arrays[0].ndim == 1:
        return np.concatenate(arrays)
    width = max(array.shape[1] for array in arrays)
    return np.concatenate(
        [
            np.pad(
                array,
                [(0, 0), (0, width - array.shape[1]), *[(0, 0)] * (array.ndim - 2)],
                constant_values=IGNORED,
            )
            for array in arrays
        ]
    )
