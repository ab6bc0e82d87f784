"""The examples of an optimiser step, and its micro-batches; neither depends on the number of processes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from harness_hf.inference.pieces import Encoded

CPU_PARTS = 4
"""On a CPU a step is cut into so many parts, so that up to four processes share it with the same dropout."""
SMALLEST_PART = 4
"""Examples; with fewer at a time the overhead of every part shows."""


class StepBatches:
    """The examples of every optimiser step: consecutive ones of a permutation that each epoch draws anew.

    The last step of an epoch has what is left. With `lengths`, an epoch's order is that of transformers'
    `LengthGroupedSampler`, whose groups have the size of a step.
    """

    def __init__(
        self, count: int, *, batch_size: int, seed: int, lengths: Sequence[int] | None = None
    ) -> None:
        self._count = count
        self._batch_size = batch_size
        self._seed = seed
        self._lengths = list(lengths) if lengths is not None else None
        self._epoch = -1
        self._order: list[int] = []

    @property
    def per_epoch(self) -> int:
        """The number of steps of an epoch."""
        return math.ceil(self._count / self._batch_size)

    def examples(self, step: int) -> list[int]:
        """Return the numbers of the examples of a step; steps count from 0."""
        epoch, number = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self._draw(epoch)
        return self._order[number * self._batch_size : (number + 1) * self._batch_size]

    def _draw(self, epoch: int) -> list[int]:
        generator = torch.Generator().manual_seed(seed_of(self._seed, epoch))
        if self._lengths is None:
            drawn: list[int] = torch.randperm(self._count, generator=generator).tolist()
            return drawn
        from transformers.trainer_pt_utils import get_length_grouped_indices  # it imports peft

        group: Any = get_length_grouped_indices  # untyped
        grouped: list[int] = group(self._lengths, self._batch_size, generator=generator)
        return grouped


def default_parts(batch_size: int, device: torch.device, processes: int) -> int:
    """Return how many parts a step is cut into at least.

    On a CPU four, or two, of at least `SMALLEST_PART` examples each, where that divides the batch, else one. On
    GPUs one per process: a single GPU takes its batch whole, so that the dropout masks of several GPUs differ from
    those of one.
    """
    if device.type != "cpu":
        return processes
    dividing = (count for count in (CPU_PARTS, 2) if batch_size % count == 0)
    return next((count for count in dividing if batch_size // count >= SMALLEST_PART), 1)


def micro_batch_size(batch_size: int, pieces: int, budget: int, count: int) -> int:
    """Return how many examples go through the network at once.

    It is the largest size that divides a part of the batch, where an example has up to `pieces` pieces and
    at most `budget` pieces go at once; one where not even one example keeps to the budget.
    """
    share = math.ceil(batch_size / count)
    fitting = max(1, budget // pieces)
    return max(size for size in range(1, share + 1) if share % size == 0 and size <= fitting)


def cut(examples: Sequence[int], size: int) -> list[list[int]]:
    """Return the micro-batches of a step: consecutive examples, `size` of them, fewer in the last one."""
    return [list(examples[start : start + size]) for start in range(0, len(examples), size)]


def seed_generator(device: torch.device, seed: int) -> None:
    """Seed what is drawn on a device and on the CPU.

    `torch.manual_seed` does so for all devices, and takes a millisecond where there are GPUs it has not opened.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index].manual_seed(seed)


def seed_of(*numbers: int) -> int:
    """Return a seed for torch that is drawn from all of the numbers, none of them negative."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))


@dataclass(frozen=True, slots=True)
class Feature:
    """One training sequence, or those of one multiple-choice item or pair, with the targets by input name."""

    sequences: tuple[Encoded, ...]
    targets: Mapping[str, Any]

    def __len__(self) -> int:
        """Return the number of pieces of the longest sequence."""
        return max(len(sequence) for sequence in self.sequences)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadTraining:
    """All that the training loop needs to know about a head."""

    train: Sequence[Feature]
    validation: Sequence[Feature]
    collate: Callable[[list[Any]], dict[str, Any]]
    label_names: tuple[str, ...] = ("labels",)
    decide: Callable[[Any, Any], Any] = lambda logits, _: logits.argmax(dim=-1)
    """(logits, targets) of a batch -> what `score` needs of them, so that logits are not kept."""
    score: Callable[[Any, Any], float] = lambda decided, gold: float(
        np.mean(np.asarray(decided) == np.asarray(gold))
    )
    """(what `decide` kept, targets) of the whole dev set -> a number in [0, 1]."""
    metric: str = "accuracy"
    """Name of that number."""
    contrast: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None
    """(vectors, scale) of a whole step -> its loss, where a loss compares examples; the network then returns them as
    ``logits`` and ``scale``."""
    loss: Callable[..., torch.Tensor] | None = None
    """Called as ``loss(outputs, labels, num_items_in_batch=n)``, where n counts the labels of the whole step; None
    takes the network's own, a mean over the items of the batch."""
    target_pieces: int = 0
    """The most pieces of an example's target, which take memory besides its sequences."""
    evaluation_batch: int = 32
    """Examples of the dev set at once."""

    def items(self, feature: Feature) -> int:
        """Return how many targets of an example the loss is a mean over: one, or one for each of a list."""
        targets = feature.targets[self.label_names[0]]
        return len(targets) if isinstance(targets, list) else 1


def collate_with(
    pad: Callable[[Sequence[Encoded]], Mapping[str, torch.Tensor]], names: Sequence[str]
) -> Callable[[list[Any]], dict[str, Any]]:
    """Return a collator of one-sequence features whose targets are single integers."""

    def collate(features: list[Any]) -> dict[str, Any]:
        batch = dict(pad([feature.sequences[0] for feature in features]))
        for name in names:
            batch[name] = torch.tensor([feature.targets[name] for feature in features], dtype=torch.long)
        return batch

    return collate
