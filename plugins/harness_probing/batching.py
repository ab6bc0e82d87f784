"""In which order probes see the items: every seed has an order of its own in every epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from harness import FloatArray
from harness_probing.problem import Numbers
from harness_probing.settings import ProbeSettings

__all__ = ["batch_size", "dev_weights", "epoch_batches", "stacked"]


def batch_size(settings: ProbeSettings, items: int) -> int:
    """Return how many vectors or sentences make a batch when train has so many of them."""
    if settings.batch_unit == "sentences" or not settings.steps_per_epoch:
        return settings.batch_size
    smallest = min(settings.smallest_batch, settings.batch_size)
    return max(smallest, min(settings.batch_size, items // settings.steps_per_epoch))


def epoch_batches(settings: ProbeSettings, sentences: Numbers, seed: int, epoch: int) -> list[Numbers]:
    """Return the items of every batch of an epoch, shuffled by vector or by sentence.

    Args:
        settings: The size and unit of batches.
        sentences: Shape (n,): the sentence number of every item.
        seed: Of the probe.
        epoch: From 0.
    """
    generator = np.random.default_rng([seed, epoch])
    if settings.batch_unit == "vectors":
        order = generator.permutation(len(sentences))
        size = batch_size(settings, len(sentences))
        return [order[start : start + size] for start in range(0, len(order), size)]
    numbers = np.unique(sentences)
    place = np.empty(int(numbers.max(initial=-1)) + 1, dtype=np.int64)
    place[generator.permutation(numbers)] = np.arange(len(numbers))
    order = np.argsort(place[sentences], kind="stable")
    batch_of = place[sentences][order] // settings.batch_size
    return np.split(order, np.flatnonzero(np.diff(batch_of)) + 1)


def dev_weights(settings: ProbeSettings, sentences: Numbers) -> FloatArray:
    """Return what every item's loss counts in the dev loss: shape (n,), of sum 1.

    With batches of sentences the dev loss is the mean of batch means, as the released notebooks compute it.
    """
    if settings.batch_unit == "vectors":
        return np.full(len(sentences), 1 / max(1, len(sentences)), dtype=np.float32)
    ranks = np.unique(sentences, return_inverse=True)[1]
    batches = ranks // settings.batch_size
    sizes = np.bincount(batches)
    found: FloatArray = (1 / (sizes[batches] * len(sizes))).astype(np.float32)
    return found


def stacked(batches: Sequence[Sequence[Numbers]]) -> Iterator[tuple[Numbers, FloatArray]]:
    """Yield step by step the items of several seeds: numbers and weights, both of shape (seeds, longest batch).

    The weights of a seed's items are those of a mean; places beyond the end of its batch have weight 0.
    """
    for own in zip(*batches, strict=True):
        longest = max(map(len, own))
        items = np.zeros((len(own), longest), dtype=np.int64)
        weights = np.zeros((len(own), longest), dtype=np.float32)
        for row, part in enumerate(own):
            items[row, : len(part)] = part
            weights[row, : len(part)] = 1 / len(part)
        yield items, weights
