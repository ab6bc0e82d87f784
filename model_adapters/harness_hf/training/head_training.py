"""What the training loop needs from a head: features, their batches, and the score of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from harness_hf.inference.batching import Encoded

__all__ = ["Feature", "HeadTraining", "collate_with"]


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
    label_names: tuple[str, ...]
    decide: Callable[[Any, Any], Any]
    """(logits, targets) of a batch -> what `score` needs of them, so that logits are not kept."""
    score: Callable[[Any, Any], float]
    """(what `decide` kept, targets) of the whole dev set -> a number in [0, 1]."""
    metric: str
    """Name of that number."""
    whole_batches: bool = False
    """Whether the loss compares the examples of a batch, which the network then represents and contrasts."""
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
