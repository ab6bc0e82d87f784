"""The gradient of an optimiser step, summed over micro-batches and processes."""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from accelerate.utils import reduce

from harness_hf.training.batches import HeadTraining, cut, seed_generator, seed_of
from harness_hf.training.engine import Engine

__all__ = ["ContrastiveStep", "MicroBatch", "SummedStep", "TrainingStep"]


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
        parts = cut(examples, size)
        counted = [(number, self._items(part)) for number, part in enumerate(parts)]
        numbers = [number for number, items in counted if items]
        own = numbers[self._processes.rank :: self._processes.count]
        rounds = math.ceil(len(numbers) / self._processes.count)
        repeats = numbers[-1:] * (rounds - len(own))
        micro = []
        for place, number in enumerate([*own, *repeats]):
            batch = self._batch(step, number, parts[number])
            micro.append(MicroBatch(number, parts[number], number * size, batch, place < len(own)))
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
        one = MicroBatch(0, examples, 0, self._batch(0, 0, examples), True)
        with self._engine.summing(last=False):
            losses = [self._rehearsed(one) for _ in range(rounds)]
            while losses:
                self._engine.accelerator.backward(losses.pop())

    @abstractmethod
    def _rehearsed(self, one: MicroBatch) -> torch.Tensor:
        """Return a number that has the graph of a forward pass."""

    def _items(self, examples: Sequence[int]) -> int:
        return sum(self._data.items(self._data.train[index]) for index in examples)

    def _batch(self, step: int, number: int, examples: Sequence[int]) -> dict[str, Any]:
        """Return the inputs of a micro-batch."""
        return self._data.collate([self._data.train[index] for index in examples])

    def _inputs(self, step: int, one: MicroBatch) -> dict[str, Any]:
        """Return the inputs on the device, and seed what is random in the pass to come."""
        seed_generator(self._device, seed_of(self._seed, step, one.number))
        return self._engine.place(one.batch)


class SummedStep(TrainingStep):
    """A step whose loss is a mean over examples or their target tokens, so that micro-batches add up to it."""

    def compute(self, step: int, micro: Sequence[MicroBatch], total: int, *, frugal: bool) -> float:
        """Leave the gradient of a step in the parameters, and return its loss."""
        loss = torch.zeros((), device=self._device)
        for one in micro:
            with self._engine.summing(last=one is micro[-1]):
                own = self._items(one.examples) if one.counts else 0
                loss += self._backward(self._inputs(step, one), own, total)
        return sum(row[0] for row in self._processes.exchange([float(loss)]))

    def _backward(self, batch: dict[str, Any], own: int, total: int) -> torch.Tensor:
        """Add the gradients of a micro-batch with `own` of the step's `total` items; return its part of the loss."""
        loss = self._loss(batch, own, total)
        self._engine.accelerator.backward(loss * self._processes.count if self._processes.count > 1 else loss)
        return loss.detach()

    def _loss(self, batch: dict[str, Any], own: int, total: int) -> torch.Tensor:
        if self._data.loss is None:
            mean: torch.Tensor = self._engine.model(**batch)["loss"]
            return mean * (own / total)
        labels = batch.pop(self._data.label_names[0])
        part = self._data.loss(self._engine.model(**batch), labels, num_items_in_batch=total)
        return part if own else part * 0

    def _rehearsed(self, one: MicroBatch) -> torch.Tensor:
        return self._loss(self._inputs(0, one), 1, 1)


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
        made: list[dict[str, torch.Tensor]] = []
        for one in micro:
            last = one is micro[-1] and not frugal
            with self._engine.summing(last=last), torch.set_grad_enabled(not frugal):
                made.append(self._engine.model(**self._represented(step, one)))
        vectors = self._gather(micro, [one["logits"].detach() for one in made], total).requires_grad_()
        scale = made[0]["scale"].detach().clone().requires_grad_()
        loss = contrast(vectors, scale)
        self._engine.accelerator.backward(loss)
        assert vectors.grad is not None and scale.grad is not None
        vectors.grad *= self._processes.count
        parts = [vectors.grad[one.start : one.start + len(one.examples)] * one.counts for one in micro]
        gradients = [(part, scale.grad * (place == 0)) for place, part in enumerate(parts)]
        if self._engine.is_replicated and not frugal:
            # Its gradients are exchanged in one backward pass, that of the last forward pass.
            tensors = [tensor for one in made for tensor in (one["logits"], one["scale"])]
            torch.autograd.backward(tensors, [one for pair in gradients for one in pair])
            return float(loss.detach())
        for one, found, gradient in zip(micro, made, gradients, strict=True):
            with self._engine.summing(last=one is micro[-1]):
                again = self._engine.model(**self._represented(step, one)) if frugal else found
                torch.autograd.backward([again["logits"], again["scale"]], gradient)
        return float(loss.detach())

    def _rehearsed(self, one: MicroBatch) -> torch.Tensor:
        found = self._engine.model(**self._represented(0, one))
        loss: torch.Tensor = found["logits"].sum() + found["scale"].sum()
        return loss

    def _represented(self, step: int, one: MicroBatch) -> dict[str, Any]:
        inputs = self._inputs(step, one)
        return {"query": inputs["query"], "passage": inputs["passage"]}

    def _gather(self, micro: Sequence[MicroBatch], own: Sequence[torch.Tensor], total: int) -> torch.Tensor:
        """Return the vectors of the whole step, in its order, of shape (examples, 2, width)."""
        whole = own[0].new_zeros((total, *own[0].shape[1:]))
        for one, rows in zip(micro, own, strict=True):
            if one.counts:
                whole[one.start : one.start + len(one.examples)] = rows
        # Every row comes from one process and is zero in the others.
        vectors: torch.Tensor = reduce(whole, reduction="sum")
        return vectors
