"""Minimum description length of the labels given a layer: the online code (Voita and Titov 2020, section 2.2.2).

Labels are sent in portions. The first goes with a uniform code; a probe that was trained on all that has been sent
codes the next one. What takes fewer bits is easier to extract: https://aclanthology.org/2020.emnlp-main.14
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from harness_probing.problem import Numbers
from harness_probing.settings import ProbeSettings
from harness_probing.training import LabelledFeatures, TrainedProbes, nll, train_probes

ROWS = 4_096
SMALLEST_DEV = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLengths:
    """How many bits the labels of train take."""

    bits: torch.Tensor
    """Shape (tasks, layers), float64."""
    uniform_bits: float
    """Number of labels times log2 of the number of classes."""

    def compression(self) -> torch.Tensor:
        """Return by how much shorter than the uniform code the online code is: shape (tasks, layers)."""
        return self.uniform_bits / self.bits


def portion_ends(items: int, fractions: Sequence[float]) -> list[int]:
    """Return how many labels have been sent after every portion; portions without a label are skipped."""
    return sorted({max(1, math.floor(items * fraction)) for fraction in fractions})


def sending_order(sentences: Numbers, seed: int) -> Numbers:
    """Return the items in the order in which they are sent: sentences shuffled, a sentence's items together."""
    numbers, ranks = np.unique(sentences, return_inverse=True)
    position = np.random.default_rng([seed, 0x0DE]).permutation(len(numbers))
    return np.argsort(position[ranks], kind="stable").astype(np.int64)


def online_code(
    train: LabelledFeatures, dev: LabelledFeatures, settings: ProbeSettings, *, seed: int
) -> CodeLengths:
    """Return the code lengths of the labels in `train`, whose first axis of classes has this one seed.

    A class that is in none of the portions so far keeps its column in the softmax, so that its first label costs
    many bits, but not infinitely many. Probes stop on dev, as in the paper. Only as much of dev as has been sent
    (at least 1,000 items) judges a portion, since small portions would spend their time there.
    """
    count = train.features.shape[1]
    ends = portion_ends(count, settings.fractions)
    order, dev_order = sending_order(train.sentences, seed), sending_order(dev.sentences, seed)
    bits = torch.full(
        (train.classes.shape[1], train.features.shape[0]),
        ends[0] * math.log2(train.class_count),
        dtype=torch.float64,
    )
    for end, following in itertools.pairwise(ends):
        probes = train_probes(
            train.part(order[:end]),
            dev.part(np.sort(dev_order[: max(end, SMALLEST_DEV)])),
            settings,
            seeds=(seed,),
            exclude_unseen=False,
        )
        bits += _bits(probes, train, order[end:following])
    return CodeLengths(bits=bits, uniform_bits=count * math.log2(train.class_count))


def _bits(probes: TrainedProbes, train: LabelledFeatures, items: Numbers) -> torch.Tensor:
    """Return how many bits the probes need for these labels: shape (tasks, layers)."""
    _, tasks, layers, _, classes = probes.weight.shape
    bits = torch.zeros((tasks, layers), dtype=torch.float64)
    for start in range(0, len(items), ROWS):
        block = train.part(items[start : start + ROWS])
        for layer in range(layers):
            wide = probes.weight[0, :, layer].permute(1, 0, 2).reshape(-1, tasks * classes)
            logits = (block.features[layer] @ wide).view(-1, tasks, classes) + probes.bias[0, :, layer]
            lengths = nll(logits.double(), block.classes[0].T)
            bits[:, layer] += lengths.sum(dim=0).cpu() / math.log(2)
    return bits
