"""The score of a network on the dev set, the same number in all processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from accelerate.utils import gather, pad_across_processes
from torch.nn.utils.rnn import pad_sequence

from harness import TrainingError
from harness_hf.inference.batching import is_shortage
from harness_hf.training.batches import HeadTraining, cut
from harness_hf.training.engine import Engine

IGNORED = -100
"""What fills up rows of targets and decisions that differ in width."""


class DevSet:
    """The dev examples of a training, each of which one process looks at."""

    def __init__(self, data: HeadTraining, engine: Engine) -> None:
        # Order does not matter to the score, and like lengths need less padding.
        self._features = sorted(data.validation, key=len)
        self._data = data
        self._engine = engine

    def score(self) -> float:
        """Return the score on all of the dev set; the network is left as it was.

        Batches are the same for any number of processes. Raises `TrainingError` in all of them where it fails
        in any.
        """
        rows: list[tuple[torch.Tensor, ...]] = []
        processes = self._engine.processes
        with processes.inseparable() if self._engine.is_sharded else processes.together():
            rows = self._decide_share()
        numbers, decided, *targets = map(self._gathered, zip(*rows, strict=True))
        # Where an example was repeated, either row will do; filled-up rows have the number -100.
        row_of = {number: row for row, number in enumerate(numbers.tolist())}
        order = [row_of[number] for number in range(len(self._features))]
        gold = tuple(column[order].numpy() for column in targets)
        value = 0.0
        with processes.together():
            value = float(self._data.score(decided[order].numpy(), gold if len(gold) > 1 else gold[0]))
        return processes.exchange([value])[0][0]

    def _gathered(self, rows: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the rows of all processes on the CPU, the narrower ones filled up."""
        column = pad_sequence(list(rows), True, IGNORED) if rows[0].ndim else torch.stack(list(rows))
        if self._engine.processes.count > 1:
            for dim in (0, 1):
                column = pad_across_processes(column, dim, IGNORED)
            column = gather(column)
        return column.cpu()

    def _decide_share(self) -> list[tuple[torch.Tensor, ...]]:
        """Return the number of every example of this process's batches, what is kept of it, and its targets."""
        batches = cut(range(len(self._features)), self._data.evaluation_batch)
        network, processes = self._engine.network, self._engine.processes
        rows = []
        training = network.training
        network.eval()
        try:
            for start in range(0, len(batches), processes.count):
                # A process without a batch repeats the last one: the weights of a sharded network take all processes.
                rows += self._decide(batches[min(start + processes.rank, len(batches) - 1)])
        finally:
            network.train(training)
        return rows

    def _decide(self, numbers: Sequence[int]) -> list[tuple[torch.Tensor, ...]]:
        data, features = self._data, [self._features[number] for number in numbers]
        batch = self._engine.place(data.collate(features))
        labels = [batch.pop(name) for name in data.label_names]
        try:
            with torch.no_grad():
                outputs = self._engine.network(**batch)
                decided = data.decide(_logits(outputs), labels[0] if len(labels) == 1 else tuple(labels))
        except Exception as error:
            if self._engine.is_sharded or not is_shortage(error):
                raise
        else:
            # Floating-point numbers in one precision, and others in one type, so that they can be gathered.
            decisions = decided.float() if decided.is_floating_point() else decided.long()
            indices = torch.tensor(list(numbers), device=decisions.device)
            return list(zip(indices, decisions, *labels, strict=True))
        if len(features) == 1:
            raise TrainingError(
                f"A dev example of {len(features[0])} pieces does not fit into the memory.",
                hint="Choose a recipe with a smaller max_length.",
            )
        half = len(features) // 2
        return self._decide(numbers[:half]) + self._decide(numbers[half:])


def _logits(outputs: Any) -> Any:
    if "logits" in outputs:
        return outputs["logits"]
    return outputs["start_logits"], outputs["end_logits"]
