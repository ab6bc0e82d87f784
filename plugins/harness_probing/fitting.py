"""Fits the probes of all problems on cached train and dev states, layer by layer, and measures code lengths.

The code is the online code: the minimum description length of the labels given a layer (Voita and Titov 2020, section
2.2.2).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from harness import DataError, Progress
from harness_probing.problem import Numbers, ProbeProblem, Targets
from harness_probing.scores import (
    Baselines,
    Counts,
    Floats,
    confusion_counts,
    confusion_scores,
    control_classes,
    fit_baselines,
    type_keys,
)
from harness_probing.settings import ProbeSettings
from harness_probing.states import Scaling, States, layer_blocks, read_features, scaling_of
from harness_probing.training import LabelledFeatures, ScalarMix, TrainedProbes, nll, train_mix, train_probes

ROWS = 4_096
SMALLEST_DEV = 1_000
COPIES = 3
"""How often a layer's features are held at the same time, at the most: the portions of the online code are copies."""


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


Tensor = torch.Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitTargets:
    """The labelled vectors of one problem in train and dev."""

    train: Targets
    dev: Targets


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedProbes:
    """All probes of one problem; they apply to hidden states as the model gives them."""

    problem: ProbeProblem
    settings: ProbeSettings
    layers: tuple[int, ...]
    """Numbers of the layers that are probed."""
    weight: Tensor = field(repr=False)
    """Shape (seeds, tasks, layers, dimension, classes), float32; tasks are the task and its control task."""
    bias: Tensor = field(repr=False)
    """Shape (seeds, tasks, layers, classes); minus infinity for a class that is not in train."""
    epochs: Counts = field(repr=False)
    """Shape (seeds, tasks, layers)."""
    dev_confusion: Counts = field(repr=False)
    """Shape (seeds, tasks, layers, gold, predicted)."""
    train_counts: Numbers
    """Shape (classes,)."""
    dev_counts: Numbers
    best_layer: int
    """Number of the layer with the highest mean weighted F1 on dev; of equal ones the lowest."""
    baselines: Baselines
    code: CodeLengths | None
    mix: ScalarMix | None

    @property
    def controlled(self) -> bool:
        """Whether there are probes of a control task."""
        return self.weight.shape[1] > 1

    def controls(self, types: Sequence[str]) -> Numbers:
        """Return the control tasks' classes of items of these types: shape (seeds, n)."""
        return control_classes(type_keys(types), self.train_counts.tolist(), self.settings.seeds)


def fit_probes(
    train: States,
    dev: States,
    targets: SplitTargets,
    settings: ProbeSettings,
    *,
    device: str = "cpu",
    progress: Progress | None = None,
) -> FittedProbes:
    """Return the probes of a problem.

    Args:
        train: States of the train sentences.
        dev: States of the dev sentences, of the same layers.
        targets: The problem over these sentences.
        settings: How to train.
        device: Where to train: ``cpu`` or ``cuda``.
        progress: Called for every layer.

    Raises:
        DataError: The problem has no items in train or dev, only one class in train, or no dev item of a class of
            train.
    """
    _check(targets)
    layers = settings.layers_of(train.layers)
    progress = progress or Progress()
    progress.start("probing", len(layers), "layers")
    try:
        fitting = _Fitting(train, dev, targets, settings, torch.device(device))
        size = COPIES * 4 * (len(targets.train) + len(targets.dev)) * train.dimension
        for block in layer_blocks(layers, bytes_per_layer=size, device=fitting.device):
            fitting.fit_block([layers[index] for index in block])
            progress.advance(len(block))
        return fitting.fitted(layers)
    finally:
        progress.finish()


def _check(targets: SplitTargets) -> None:
    name = targets.train.problem.name
    for split, split_targets in (("train", targets.train), ("dev", targets.dev)):
        if not len(split_targets):
            raise DataError(f"The problem {name!r} has no labelled items in {split}.")
    counts = targets.train.counts()
    if np.count_nonzero(counts) < 2:
        only = targets.train.problem.classes[int(counts.argmax())]
        raise DataError(
            f"The problem {name!r} has only the class {only!r} in train; at least two are needed."
        )
    if not counts[targets.dev.classes].any():
        raise DataError(f"The problem {name!r} has no dev item of a class that train has.")


class _Fitting:
    """The probes of one problem, block by block of layers."""

    def __init__(
        self, train: States, dev: States, targets: SplitTargets, settings: ProbeSettings, device: torch.device
    ) -> None:
        self.train, self.dev, self.targets, self.settings = train, dev, targets, settings
        self.device = device
        self.counts = targets.train.counts()
        self.train_classes = self._all_classes(targets.train)
        self.dev_classes = self._all_classes(targets.dev)
        self.scalings: list[Scaling] = []
        self.probes: list[TrainedProbes] = []
        self.confusions: list[Counts] = []
        self.codes: list[CodeLengths] = []

    def _all_classes(self, targets: Targets) -> Tensor:
        """Return the classes of the task and its control task: shape (seeds, tasks, n)."""
        gold = np.broadcast_to(targets.classes, (len(self.settings.seeds), len(targets)))
        tasks = [gold]
        if self.settings.control:
            keys = type_keys(targets.types)
            tasks.append(control_classes(keys, self.counts.tolist(), self.settings.seeds))
        return torch.as_tensor(np.stack(tasks, axis=1), device=self.device)

    def fit_block(self, layers: Sequence[int]) -> None:
        """Train the probes of some layers, and measure their code lengths."""
        learnt = self._features(self.train, self.targets.train, layers, self.train_classes)
        judging = self._features(self.dev, self.targets.dev, layers, self.dev_classes)
        scaling = Scaling.none(len(layers), self.train.dimension)
        if self.settings.standardize:
            scaling = scaling_of(learnt.features)
            scaling.apply(learnt.features)
            scaling.apply(judging.features)
        probes = train_probes(learnt, judging, self.settings, seeds=self.settings.seeds)
        self.scalings.append(scaling)
        self.probes.append(probes)
        self.confusions.append(_confusion(probes, judging))
        if self.settings.fractions:
            first, judge = (replace(features, classes=features.classes[:1]) for features in (learnt, judging))
            self.codes.append(online_code(first, judge, self.settings, seed=self.settings.seeds[0]))

    def _features(
        self, states: States, targets: Targets, layers: Sequence[int], classes: Tensor
    ) -> LabelledFeatures:
        return LabelledFeatures(
            features=read_features(states, targets.vectors, layers, self.device),
            classes=classes,
            sentences=targets.sentences,
            class_count=len(targets.problem.classes),
        )

    def fitted(self, layers: tuple[int, ...]) -> FittedProbes:
        """Return the probes of all layers, after the scalar mix over them."""
        scaling = Scaling(
            mean=np.concatenate([part.mean for part in self.scalings]),
            scale=np.concatenate([part.scale for part in self.scalings]),
        )
        mix = None
        if self.settings.mix:
            train, dev = (self.train, self.targets.train), (self.dev, self.targets.dev)
            mix = train_mix(train, dev, self.settings, layers=layers, scaling=scaling, device=self.device)
        weight, bias, epochs = (
            torch.cat([getattr(part, name) for part in self.probes], dim=2)
            for name in ("weight", "bias", "epochs")
        )
        # The same probes for features that are not scaled.
        scale, mean = (torch.as_tensor(part, device=self.device) for part in (scaling.scale, scaling.mean))
        raw = weight.double() / scale.unsqueeze(-1)
        shifted = bias.double() - (mean.unsqueeze(-1) * raw).sum(dim=-2)
        confusion = np.concatenate(self.confusions, axis=2)
        code = None
        if self.codes:
            bits = torch.cat([own.bits for own in self.codes], dim=1)
            code = CodeLengths(bits=bits, uniform_bits=self.codes[0].uniform_bits)
        return FittedProbes(
            problem=self.targets.train.problem,
            settings=self.settings,
            layers=layers,
            weight=raw.float(),
            bias=shifted.float(),
            epochs=epochs.cpu().numpy(),
            dev_confusion=confusion,
            train_counts=self.counts,
            dev_counts=self.targets.dev.counts(),
            best_layer=best_layer(layers, confusion_scores(confusion[:, 0])["weighted_f1"].mean(axis=0)),
            baselines=fit_baselines(self.targets.train),
            code=code,
            mix=mix,
        )


def best_layer(layers: Sequence[int], values: Floats) -> int:
    """Return the number of the layer with the highest value, the lowest of equal ones; not 0 if there is another."""
    candidates = [index for index, layer in enumerate(layers) if layer > 0] or [0]
    return layers[max(candidates, key=lambda index: (values[index], -layers[index]))]


def _confusion(probes: TrainedProbes, judging: LabelledFeatures) -> Counts:
    """Return confusion counts on dev: shape (seeds, tasks, layers, gold, predicted)."""
    seeds, tasks, layers, _, classes = probes.weight.shape
    confusion = np.zeros((layers, seeds, tasks, classes, classes), dtype=np.int64)
    for layer in range(layers):
        wide = probes.weight[:, :, layer].permute(2, 0, 1, 3).reshape(-1, seeds * tasks * classes)
        for start in range(0, len(judging.sentences), ROWS):
            rows = slice(start, start + ROWS)
            logits = (judging.features[layer, rows] @ wide).view(-1, seeds, tasks, classes)
            predicted = (logits + probes.bias[:, :, layer]).argmax(dim=-1).permute(1, 2, 0)
            confusion[layer] += confusion_counts(
                judging.classes[..., rows].cpu().numpy(), predicted.cpu().numpy(), classes
            )
    return np.moveaxis(confusion, 0, 2)
