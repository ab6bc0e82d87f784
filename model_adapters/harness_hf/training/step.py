"""The gradient of an optimiser step, summed over micro-batches and processes, and the score on the dev set."""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from accelerate.utils import gather, pad_across_processes, reduce
from torch.nn.utils.rnn import pad_sequence

from harness import TrainingError
from harness_hf.inference.pieces import is_shortage
from harness_hf.training.batches import HeadTraining, cut, seed_generator, seed_of
from harness_hf.training.engine import Engine


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Examples that go through the network at once."""

    number: int
    """Its place in the step, which seeds what is random in it."""
    examples: Sequence[int]
    start: int
    """Place of its first example in the step."""
    batch: dict[str, Any]
    counts: bool
    """False for a repeat, which keeps this process in step with those that have one more."""


class TrainingStep(ABC):
    """Makes the gradient of an optimiser step.

    Before every micro-batch torch is seeded from the seed, the step and the number of the micro-batch: dropout
    is the same whichever process takes it. All processes take equally many micro-batches, the last of some being
    repeats without weight, and accelerate averages over processes: gradients are multiplied by their number.
    """

    def __init__(self, engine: Engine, data: HeadTraining, *, seed: int) -> None:
        self._engine = engine
        self._data = data
        self._seed = seed
        self._processes = engine.processes
        self._device = engine.processes.device

    @abstractmethod
    def compute(self, step: int, micro: Sequence[MicroBatch], total: int, *, frugal: bool) -> float:
        """Leave the gradient of a step in the parameters, and return its loss.

        `micro` are the micro-batches of this process and `total` the items of the whole step. With `frugal` memory
        is saved at the cost of time, where that can be done.
        """

    def split(self, step: int, examples: Sequence[int], size: int) -> tuple[list[MicroBatch], int]:
        """Return the micro-batches of this process, `size` examples each, and the items of the step."""
        chunks = cut(examples, size)
        counted = [(number, self._items(chunk)) for number, chunk in enumerate(chunks)]
        numbers = [number for number, items in counted if items]
        assigned = numbers[self._processes.rank :: self._processes.count]
        rounds = math.ceil(len(numbers) / self._processes.count)
        repeats = numbers[-1:] * (rounds - len(assigned))
        micro = []
        for position, number in enumerate([*assigned, *repeats]):
            batch = self._batch(step, number, chunks[number])
            micro.append(MicroBatch(number, chunks[number], number * size, batch, position < len(assigned)))
        return micro, sum(items for _, items in counted)

    def longest(self, size: int) -> list[int]:
        """Return the `size` examples that need most memory."""
        sizes = [len(feature) + self._data.items(feature) for feature in self._data.train]
        return heapq.nlargest(size, range(len(sizes)), key=sizes.__getitem__)

    def rehearse(self, size: int, rounds: int) -> None:
        """Run the examples that need most memory, `rounds` micro-batches of them before the first backward pass.

        Only a sharded network waits for other processes in it. The gradients are of no use.
        """
        examples = self.longest(size)
        batch = MicroBatch(0, examples, 0, self._batch(0, 0, examples), True)
        with self._engine.summing(last=False):
            losses = [self._rehearsed(batch) for _ in range(rounds)]
            while losses:
                self._engine.accelerator.backward(losses.pop())

    @abstractmethod
    def _rehearsed(self, batch: MicroBatch) -> torch.Tensor:
        """Return a number that has the graph of a forward pass."""

    def _items(self, examples: Sequence[int]) -> int:
        return sum(self._data.items(self._data.train[index]) for index in examples)

    def _batch(self, step: int, number: int, examples: Sequence[int]) -> dict[str, Any]:
        """Return the inputs of a micro-batch."""
        return self._data.collate([self._data.train[index] for index in examples])

    def _inputs(self, step: int, batch: MicroBatch) -> dict[str, Any]:
        """Return the inputs on the device, and seed what is random in the pass to come."""
        seed_generator(self._device, seed_of(self._seed, step, batch.number))
        return self._engine.place(batch.batch)


class SummedStep(TrainingStep):
    """A step whose loss is a mean over examples or their target tokens, so that micro-batches add up to it."""

    def compute(self, step: int, micro: Sequence[MicroBatch], total: int, *, frugal: bool) -> float:
        """Leave the gradient of a step in the parameters, and return its loss."""
        loss = torch.zeros((), device=self._device)
        for batch in micro:
            with self._engine.summing(last=batch is micro[-1]):
                items = self._items(batch.examples) if batch.counts else 0
                loss += self._backward(self._inputs(step, batch), items, total)
        return sum(row[0] for row in self._processes.exchange([float(loss)]))

    def _backward(self, batch: dict[str, Any], items: int, total: int) -> torch.Tensor:
        """Add the gradients of a micro-batch with `items` of the step's `total` items; return its part of the loss."""
        loss = self._loss(batch, items, total)
        self._engine.accelerator.backward(loss * self._processes.count if self._processes.count > 1 else loss)
        return loss.detach()

    def _loss(self, batch: dict[str, Any], items: int, total: int) -> torch.Tensor:
        if self._data.loss is None:
            mean: torch.Tensor = self._engine.model(**batch)["loss"]
            return mean * (items / total)
        labels = batch.pop(self._data.label_names[0])
        loss = self._data.loss(self._engine.model(**batch), labels, num_items_in_batch=total)
        return loss if items else loss * 0

    def _rehearsed(self, batch: MicroBatch) -> torch.Tensor:
        return self._loss(self._inputs(0, batch), 1, 1)


class ContrastiveStep(TrainingStep):
    """A step whose loss compares all of its examples, which several processes represent in parts.

    The vectors of all parts are gathered, every process has the loss of the whole batch and its gradient with
    respect to all vectors and to the scale, and propagates that of its own vectors through the network: what an
    all-gather with gradient does. To be frugal, vectors are made without a graph, and made again part by part with
    the same dropout (Gao et al. 2021, arXiv 2101.06983).
    """

    def compute(self, step: int, micro: Sequence[MicroBatch], total: int, *, frugal: bool) -> float:
        """Leave the gradient of a step in the parameters, and return its loss."""
        contrast = self._data.contrast
        assert contrast is not None
        outputs: list[dict[str, torch.Tensor]] = []
        for batch in micro:
            last = batch is micro[-1] and not frugal
            with self._engine.summing(last=last), torch.set_grad_enabled(not frugal):
                outputs.append(self._engine.model(**self._represented(step, batch)))
        vectors = self._gather(
            micro, [output["logits"].detach() for output in outputs], total
        ).requires_grad_()
        scale = outputs[0]["scale"].detach().clone().requires_grad_()
        loss = contrast(vectors, scale)
        self._engine.accelerator.backward(loss)
        assert vectors.grad is not None and scale.grad is not None
        vectors.grad *= self._processes.count
        row_gradients = [
            vectors.grad[batch.start : batch.start + len(batch.examples)] * batch.counts for batch in micro
        ]
        gradients = [
            (row_gradient, scale.grad * (number == 0)) for number, row_gradient in enumerate(row_gradients)
        ]
        if self._engine.is_replicated and not frugal:
            # Its gradients are exchanged in one backward pass, that of the last forward pass.
            tensors = [tensor for output in outputs for tensor in (output["logits"], output["scale"])]
            torch.autograd.backward(tensors, [gradient for pair in gradients for gradient in pair])
            return float(loss.detach())
        for batch, output, gradient in zip(micro, outputs, gradients, strict=True):
            with self._engine.summing(last=batch is micro[-1]):
                again = self._engine.model(**self._represented(step, batch)) if frugal else output
                torch.autograd.backward([again["logits"], again["scale"]], gradient)
        return float(loss.detach())

    def _rehearsed(self, batch: MicroBatch) -> torch.Tensor:
        output = self._engine.model(**self._represented(0, batch))
        loss: torch.Tensor = output["logits"].sum() + output["scale"].sum()
        return loss

    def _represented(self, step: int, batch: MicroBatch) -> dict[str, Any]:
        inputs = self._inputs(step, batch)
        return {"query": inputs["query"], "passage": inputs["passage"]}

    def _gather(
        self, micro: Sequence[MicroBatch], vectors_of_batches: Sequence[torch.Tensor], total: int
    ) -> torch.Tensor:
        """Return the vectors of the whole step, in its order, of shape (examples, 2, width)."""
        rows_of_step = vectors_of_batches[0].new_zeros((total, *vectors_of_batches[0].shape[1:]))
        for batch, rows in zip(micro, vectors_of_batches, strict=True):
            if batch.counts:
                rows_of_step[batch.start : batch.start + len(batch.examples)] = rows
        # Every row comes from one process and is zero in the others.
        vectors: torch.Tensor = reduce(rows_of_step, reduction="sum")
        return vectors


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
