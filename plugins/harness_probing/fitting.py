"""Fits the probes of all problems on cached train and dev states, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from harness import DataError, Progress
from harness.progress import SilentProgress
from harness_probing.baselines import Baselines, fit_baselines
from harness_probing.control import control_classes, type_keys
from harness_probing.features import Floats, Scaling, layer_blocks, read_features, scaling_of
from harness_probing.mdl import CodeLengths, online_code
from harness_probing.mix import ScalarMix, train_mix
from harness_probing.problem import Numbers, ProbeProblem, Targets
from harness_probing.scores import Counts, confusion_scores
from harness_probing.settings import ProbeSettings
from harness_probing.states import States
from harness_probing.training import LabelledFeatures, TrainedProbes, train_probes

__all__ = ["FittedProbes", "SplitTargets", "best_layer", "count_confusion", "fit_probes"]

Tensor = torch.Tensor
ROWS = 4_096
COPIES = 3
"""How often a layer's features are held at the same time, at the most: the portions of the online code are copies."""


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
    targets: Sequence[SplitTargets],
    settings: ProbeSettings,
    *,
    device: str = "cpu",
    progress: Progress | None = None,
) -> list[FittedProbes]:
    """Return the probes of every problem, in order.

    Args:
        train: States of the train sentences.
        dev: States of the dev sentences, of the same layers.
        targets: The problems, all over these sentences.
        settings: How to train.
        device: Where to train: ``cpu`` or ``cuda``.
        progress: Called for every layer.

    Raises:
        DataError: A problem has no items in train or dev, only one class in train, no dev item of a class of train, or
            no types although the settings ask for control tasks.
    """
    for problem in targets:
        _check(problem, settings)
    if train.layers != dev.layers or train.dimension != dev.dimension:
        raise DataError(
            f"The states of train have layers {list(train.layers)} of {train.dimension} features, those of dev "
            f"{list(dev.layers)} of {dev.dimension}."
        )
    layers = settings.layers_of(train.layers)
    progress = progress or SilentProgress()
    progress.start("probing", len(layers) * len(targets), "layers")
    try:
        return [
            _fit(train, dev, problem, settings, torch.device(device), layers, progress) for problem in targets
        ]
    finally:
        progress.finish()


def _check(targets: SplitTargets, settings: ProbeSettings) -> None:
    name = targets.train.problem.name
    for split, own in (("train", targets.train), ("dev", targets.dev)):
        if not len(own):
            raise DataError(f"The problem {name!r} has no labelled items in {split}.")
        if settings.control and not own.types:
            raise DataError(
                f"The problem {name!r} has no types in {split}, which control tasks need.",
                hint="Give the types, or set control=False.",
            )
    counts = targets.train.counts()
    if np.count_nonzero(counts) < 2:
        only = targets.train.problem.classes[int(counts.argmax())]
        raise DataError(
            f"The problem {name!r} has only the class {only!r} in train; at least two are needed."
        )
    if not counts[targets.dev.classes].any():
        raise DataError(f"The problem {name!r} has no dev item of a class that train has.")


def _fit(
    train: States,
    dev: States,
    targets: SplitTargets,
    settings: ProbeSettings,
    device: torch.device,
    layers: tuple[int, ...],
    progress: Progress,
) -> FittedProbes:
    fitting = _ProblemFitting(train, dev, targets, settings, device, layers)
    rows = len(targets.train) + len(targets.dev)
    size = COPIES * 4 * rows * train.dimension
    for block in layer_blocks(layers, bytes_per_layer=size, device=device):
        fitting.fit_block(block)
        progress.advance(len(block))
    return fitting.fitted()


class _ProblemFitting:
    """The probes of one problem, block by block of layers."""

    def __init__(
        self,
        train: States,
        dev: States,
        targets: SplitTargets,
        settings: ProbeSettings,
        device: torch.device,
        layers: tuple[int, ...],
    ) -> None:
        self.train, self.dev, self.targets, self.settings = train, dev, targets, settings
        self.device, self.layers = device, layers
        self.class_count = len(targets.train.problem.classes)
        self.counts = targets.train.counts()
        self.train_classes = self._all_classes(targets.train)
        self.dev_classes = self._all_classes(targets.dev)
        self.scalings: list[Scaling] = []
        self.probes: list[TrainedProbes] = []
        self.confusions: list[Counts] = []
        self.codes: list[CodeLengths] = []

    def _all_classes(self, targets: Targets) -> Tensor:
        """Return the classes of the task and its control task: shape (seeds, tasks, n)."""
        own = np.broadcast_to(targets.classes, (len(self.settings.seeds), len(targets)))
        tasks = [own]
        if self.settings.control:
            keys = type_keys(targets.types)
            tasks.append(control_classes(keys, self.counts.tolist(), self.settings.seeds))
        return torch.as_tensor(np.stack(tasks, axis=1), device=self.device)

    def fit_block(self, block: range) -> None:
        """Train the probes of some layers, and measure their code lengths."""
        layers = [self.layers[index] for index in block]
        learnt = self._features(self.train, self.targets.train, layers, self.train_classes)
        judging = self._features(self.dev, self.targets.dev, layers, self.dev_classes)
        scaling = Scaling.none(len(layers), self.train.dimension)
        if self.settings.standardize:
            scaling = scaling_of(learnt.features)
            scaling.apply(learnt.features)
            scaling.apply(judging.features)
        seeds = self.settings.seeds
        probes = train_probes(
            learnt, judging, class_count=self.class_count, settings=self.settings, seeds=seeds
        )
        self.scalings.append(scaling)
        self.probes.append(probes)
        self.confusions.append(_confusion(probes, judging))
        if self.settings.fractions:
            first = LabelledFeatures(
                features=learnt.features, classes=learnt.classes[:1], sentences=learnt.sentences
            )
            judge = LabelledFeatures(
                features=judging.features, classes=judging.classes[:1], sentences=judging.sentences
            )
            code = online_code(
                first, judge, class_count=self.class_count, settings=self.settings, seed=seeds[0]
            )
            self.codes.append(code)

    def _features(
        self, states: States, targets: Targets, layers: Sequence[int], classes: Tensor
    ) -> LabelledFeatures:
        return LabelledFeatures(
            features=read_features(states, targets.vectors, layers, self.device),
            classes=classes,
            sentences=targets.sentences,
        )

    def fitted(self) -> FittedProbes:
        """Return the probes of all layers, after the scalar mix over them."""
        scaling = Scaling(
            mean=np.concatenate([part.mean for part in self.scalings]),
            scale=np.concatenate([part.scale for part in self.scalings]),
        )
        mix = None
        if self.settings.mix:
            mix = train_mix(
                (self.train, self.targets.train),
                (self.dev, self.targets.dev),
                layers=self.layers,
                scaling=scaling,
                settings=self.settings,
                device=self.device,
            )
        weight, bias = _unscaled(
            torch.cat([part.weight for part in self.probes], dim=2),
            torch.cat([part.bias for part in self.probes], dim=2),
            scaling,
        )
        confusion = np.concatenate(self.confusions, axis=2)
        return FittedProbes(
            problem=self.targets.train.problem,
            settings=self.settings,
            layers=self.layers,
            weight=weight,
            bias=bias,
            epochs=torch.cat([part.epochs for part in self.probes], dim=2).cpu().numpy(),
            dev_confusion=confusion,
            train_counts=self.counts,
            dev_counts=self.targets.dev.counts(),
            best_layer=best_layer(self.layers, confusion_scores(confusion[:, 0])["weighted_f1"].mean(axis=0)),
            baselines=fit_baselines(self.targets.train),
            code=_joined(self.codes) if self.codes else None,
            mix=mix,
        )


def best_layer(layers: Sequence[int], values: Floats) -> int:
    """Return the number of the layer with the highest value, the lowest of equal ones; not 0 if there is another."""
    candidates = [index for index, layer in enumerate(layers) if layer > 0] or [0]
    return layers[max(candidates, key=lambda index: (values[index], -layers[index]))]


def _unscaled(weight: Tensor, bias: Tensor, scaling: Scaling) -> tuple[Tensor, Tensor]:
    """Return the same probes for features that are not scaled."""
    scale = torch.as_tensor(scaling.scale, device=weight.device)
    mean = torch.as_tensor(scaling.mean, device=weight.device)
    raw = weight.double() / scale.unsqueeze(-1)
    shifted = bias.double() - (mean.unsqueeze(-1) * raw).sum(dim=-2)
    return raw.float(), shifted.float()


def _joined(codes: Sequence[CodeLengths]) -> CodeLengths:
    return CodeLengths(
        bits=torch.cat([code.bits for code in codes], dim=1), uniform_bits=codes[0].uniform_bits
    )


def _confusion(probes: TrainedProbes, judging: LabelledFeatures) -> Counts:
    """Return confusion counts on dev: shape (seeds, tasks, layers, gold, predicted)."""
    seeds, tasks, layers, _, classes = probes.weight.shape
    found = np.zeros((layers, seeds, tasks, classes, classes), dtype=np.int64)
    for layer in range(layers):
        wide = probes.weight[:, :, layer].permute(2, 0, 1, 3).reshape(-1, seeds * tasks * classes)
        for start in range(0, len(judging.sentences), ROWS):
            part = slice(start, start + ROWS)
            logits = (judging.features[layer, part] @ wide).view(-1, seeds, tasks, classes)
            predicted = (logits + probes.bias[:, :, layer]).argmax(dim=-1).permute(1, 2, 0)
            found[layer] += count_confusion(judging.classes[..., part], predicted, classes)
    return np.moveaxis(found, 0, 2)


def count_confusion(gold: Tensor, predicted: Tensor, classes: int) -> Counts:
    """Return confusion counts of shape (seeds, tasks, gold, predicted) for class numbers of shape (seeds, tasks, n)."""
    seeds, tasks, _ = predicted.shape
    probe = torch.arange(seeds * tasks, device=predicted.device).view(seeds, tasks, 1)
    codes = (probe * classes + gold) * classes + predicted
    counts = torch.bincount(codes.reshape(-1), minlength=seeds * tasks * classes * classes)
    found: Counts = counts.view(seeds, tasks, classes, classes).cpu().numpy()
    return found
