"""The gradient of an optimiser step, summed over micro-batches and processes."""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from harness_hf.inference.batching import is_shortage
from harness_hf.training.batches import HeadTraining, cut, seed_generator, seed_of
from harness_hf.training.optimization import Optimization
from harness_hf.training.processes import TrainingProcesses

__all__ = [
    "ContrastiveStep",
    "OutOfMemory",
    "Precision",
    "SummedStep",
    "TrainingStep",
]


class OutOfMemory(Exception):  # named as torch names it; it is an outcome rather than an error
    """A micro-batch was too much for the memory of some process; no weight has been changed."""

    def __init__(self, pieces: int) -> None:
        super().__init__(f"out of memory with sequences of {pieces} pieces")
        self.pieces = pieces
        """Pieces of the longest sequence of the micro-batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """How a network runs on its device."""

    device: torch.device
    autocast: Literal["no", "bf16", "fp16"]

    def context(self) -> torch.autocast:
        """Return the autocast of a forward pass."""
        kind = torch.float16 if self.autocast == "fp16" else torch.bfloat16
        return torch.autocast(self.device.type, dtype=kind, enabled=self.autocast != "no")

    def place(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Return a batch, which may hold batches, with its tensors on the device."""
        return {
            name: self.place(value) if isinstance(value, Mapping) else value.to(self.device)
            for name, value in batch.items()
        }


class TrainingStep(ABC):
    """Makes the gradient of an optimiser step.

    Before every micro-batch torch is seeded from the seed, the step and the number of the micro-batch: dropout
    is the same whichever process takes it. Gradients are summed over processes without DDP, so that a process
    without a micro-batch, or without memory, keeps no other process waiting.
    """

    def __init__(
        self,
        network: Any,
        data: HeadTraining,
        optimization: Optimization,
        *,
        processes: TrainingProcesses,
        precision: Precision,
        seed: int,
    ) -> None:
        self._network = network
        self._data = data
        self._optimization = optimization
        self._processes = processes
        self._precision = precision
        self._seed = seed
        self._longest = 0

    def compute(self, step: int, examples: Sequence[int], size: int, *, frugal: bool = False) -> float:
        """Leave the gradient of a step in the parameters, and return its loss.

        `size` examples go through the network at once. With `frugal` memory is saved at the cost of time, where
        that can be done. Raises `OutOfMemory` in all processes where one of them is out of memory.
        """
        self._optimization.clear()
        return self._compute(step, cut(examples, size), frugal)

    @abstractmethod
    def _compute(self, step: int, micro: Sequence[list[int]], frugal: bool) -> float: ...

    def _mine(self, micro: Sequence[list[int]]) -> range:
        """Return the numbers of the micro-batches of this process."""
        return range(self._processes.rank, len(micro), self._processes.count)

    def _batch(self, step: int, number: int, examples: Sequence[int]) -> dict[str, Any]:
        """Return the inputs of a micro-batch, and seed what is random in it."""
        features = [self._data.train[index] for index in examples]
        self._longest = max(len(feature) for feature in features)
        seed_generator(self._precision.device, seed_of(self._seed, step, number))
        return self._precision.place(self._data.collate(features))

    def _used(self) -> list[float]:
        """Return which parameters have a gradient here: the optimiser skips those without."""
        return [float(one.grad is not None) for one in self._optimization.parameters]

    def _sum_gradients(self, rows: Sequence[Sequence[float]]) -> None:
        used = [any(column) for column in zip(*rows, strict=True)]
        self._processes.sum_gradients(self._optimization.parameters, used)

    def _share(self, work: Callable[[], list[float]], width: int) -> list[list[float]]:
        """Run work that returns `width` numbers, and return those of all processes, by rank."""
        values, pieces, failure = [0.0] * width, 0, None
        try:
            values = work()
        except Exception as error:
            if is_shortage(error):
                pieces = max(1, self._longest)
            else:
                failure = error
        if pieces:
            self._free()
        rows = self._processes.agree(failure, [pieces, *values])
        longest = int(max(row[0] for row in rows))
        if longest:
            self._free()
            raise OutOfMemory(longest)
        return [row[1:] for row in rows]

    def _free(self) -> None:
        self._optimization.clear()
        gc.collect()
        if self._precision.device.type == "cuda":
            torch.cuda.empty_cache()


class SummedStep(TrainingStep):
    """A step whose loss is a mean over examples or their target tokens, so that micro-batches add up to it."""

    def _compute(self, step: int, micro: Sequence[list[int]], frugal: bool) -> float:
        train, items = self._data.train, self._data.items
        total = sum(items(train[index]) for examples in micro for index in examples)

        def work() -> list[float]:
            loss = torch.zeros((), device=self._precision.device)
            for number in self._mine(micro):
                own = sum(items(train[index]) for index in micro[number])
                if own:
                    loss += self._backward(self._batch(step, number, micro[number]), own, total)
            return [float(loss), *self._used()]

        rows = self._share(work, 1 + len(self._optimization.parameters))
        self._sum_gradients([row[1:] for row in rows])
        return sum(row[0] for row in rows)

    def _backward(self, batch: dict[str, Any], own: int, total: int) -> torch.Tensor:
        """Add the gradients of a micro-batch with `own` of the step's `total` items; return its part of the loss."""
        with self._precision.context():
            if self._data.loss is None:
                loss = self._network(**batch)["loss"] * (own / total)
            else:
                labels = batch.pop(self._data.label_names[0])
                loss = self._data.loss(self._network(**batch), labels, num_items_in_batch=total)
        self._optimization.backward(loss)
        part: torch.Tensor = loss.detach()
        return part


class ContrastiveStep(TrainingStep):
    """A step whose loss compares all of its examples, which several processes represent in parts.

    The vectors of all parts are gathered, every process has the loss of the whole batch and its gradient with
    respect to all vectors, and propagates that of its own vectors through the network. To be frugal, vectors are
    made without a graph, and made again part by part with the same dropout (Gao et al. 2021, arXiv 2101.06983).
    """

    def _compute(self, step: int, micro: Sequence[list[int]], frugal: bool) -> float:
        mine, own = self._mine(micro), dict[int, torch.Tensor]()

        def represent() -> list[float]:
            for number in mine:
                with torch.set_grad_enabled(not frugal):
                    own[number] = self._represent(step, number, micro[number])
            return [float(next(iter(own.values())).shape[-1]) if own else 0.0]

        width = int(max(row[0] for row in self._share(represent, 1)))
        vectors = self._gather(own, micro, width).requires_grad_()

        def contrast() -> list[float]:
            loss = self._network.contrast(vectors)
            self._optimization.backward(loss)
            if not self._processes.is_main:
                # Every process has the whole gradient of the scale, which counts once.
                self._optimization.clear()
            assert vectors.grad is not None
            for number, rows in zip(mine, _rows(micro, mine), strict=True):
                made = own.pop(number)
                made = self._represent(step, number, micro[number]) if frugal else made
                torch.autograd.backward(made, vectors.grad[rows])
            return [float(loss.detach()), *self._used()]

        shared = self._share(contrast, 1 + len(self._optimization.parameters))
        self._sum_gradients([row[1:] for row in shared])
        return shared[0][0]

    def _represent(self, step: int, number: int, examples: Sequence[int]) -> torch.Tensor:
        batch = self._batch(step, number, examples)
        with self._precision.context():
            vectors: torch.Tensor = self._network.represent(batch["query"], batch["passage"])
        return vectors

    def _gather(
        self, own: Mapping[int, torch.Tensor], micro: Sequence[list[int]], width: int
    ) -> torch.Tensor:
        """Return the vectors of the whole step, in its order, of shape (examples, 2, width)."""
        count = self._processes.count
        device = self._precision.device
        here = torch.cat([torch.zeros((0, 2, width), device=device), *(one.detach() for one in own.values())])
        places = [
            [row for rows in _rows(micro, range(rank, len(micro), count)) for row in rows]
            for rank in range(count)
        ]
        found = self._processes.gather_rows(here, [len(rows) for rows in places])
        whole = here.new_empty((sum(map(len, places)), 2, width))
        for rows, vectors in zip(places, found, strict=True):
            whole[rows] = vectors
        return whole


def _rows(micro: Sequence[list[int]], numbers: Sequence[int]) -> list[list[int]]:
    """Return the places that the examples of some micro-batches have in their step."""
    starts = [0]
    for examples in micro:
        starts.append(starts[-1] + len(examples))
    return [list(range(starts[number], starts[number + 1])) for number in numbers]
