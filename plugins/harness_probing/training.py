"""Linear probes of many layers, seeds and tasks, trained together; and the scalar mix over all layers.

The mix is one probe over a learnt weighted mean of all layers, as one more pseudo-layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from harness import TrainingError
from harness.models import FloatArray
from harness_probing.problem import Numbers, Targets
from harness_probing.settings import ProbeSettings
from harness_probing.states import Scaling, States, read_features

Tensor = torch.Tensor
DEV_ROWS = 4_096
BETAS = (0.9, 0.999)
MIX_ROWS = 1_024
SCALAR_RATE = 10.0
"""The mixing numbers learn so many times faster than the probe: a step of Adam moves each number by the rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledFeatures:
    """Vectors of a split with their classes."""

    features: Tensor
    """Shape (layers, n, dimension), float32."""
    classes: Tensor
    """Shape (seeds, tasks, n), int64: the task's own, and those of the control task where there is one."""
    sentences: Numbers
    """Shape (n,)."""
    class_count: int

    def part(self, items: Numbers) -> LabelledFeatures:
        """Return some of the items."""
        index = torch.as_tensor(items, device=self.features.device)
        return replace(
            self,
            features=self.features[:, index],
            classes=self.classes[:, :, index],
            sentences=self.sentences[items],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedProbes:
    """The probes of some layers at their best on dev."""

    weight: Tensor
    """Shape (seeds, tasks, layers, dimension, classes)."""
    bias: Tensor
    """Shape (seeds, tasks, layers, classes); minus infinity for what train does not have, if that is excluded."""
    epochs: Tensor
    """Shape (seeds, tasks, layers): after how many epochs it was reached."""


def initial_weights(
    settings: ProbeSettings, seed: int, dimension: int, columns: int
) -> tuple[Tensor, Tensor]:
    """Return weights (dimension, columns) and biases (columns): zeros, or uniform as those of torch's Linear."""
    if settings.zero_start:
        return torch.zeros((dimension, columns)), torch.zeros(columns)
    generator = torch.Generator().manual_seed(seed)
    bound = 1 / math.sqrt(dimension)
    drawn = torch.rand((dimension + 1, columns), generator=generator) * (2 * bound) - bound
    return drawn[:dimension], drawn[dimension]


def nll(logits: Tensor, classes: Tensor) -> Tensor:
    """Return negative log-likelihoods in nats: shape (...,) for logits (..., classes)."""
    gold = logits.gather(-1, classes.unsqueeze(-1)).squeeze(-1)
    return torch.logsumexp(logits, dim=-1) - gold


def train_probes(
    train: LabelledFeatures,
    dev: LabelledFeatures,
    settings: ProbeSettings,
    *,
    seeds: Sequence[int],
    exclude_unseen: bool = True,
) -> TrainedProbes:
    """Return the probes of all layers and seeds, each at its best epoch on dev.

    Args:
        train: Of at least one item.
        dev: Chooses the epoch; items of an excluded class do not count in the loss.
        settings: How to train.
        seeds: One probe a layer and task each.
        exclude_unseen: Whether a class that is not in train can never be predicted.

    Raises:
        TrainingError: The loss is not finite.
    """
    trainer = _Trainer(train, dev, settings, seeds, exclude_unseen)
    for epoch in range(settings.max_epochs):
        trainer.run_epoch(epoch)
        trainer.judge(epoch + 1)
        if not len(trainer.groups):
            break
    return trainer.trained()


class _Trainer:
    """The probes that still learn, and the best weights of all."""

    def __init__(
        self,
        train: LabelledFeatures,
        dev: LabelledFeatures,
        settings: ProbeSettings,
        seeds: Sequence[int],
        exclude_unseen: bool,
    ) -> None:
        self.train, self.dev, self.settings, self.seeds = train, dev, settings, seeds
        self.device = train.features.device
        layers, _, dimension = train.features.shape
        self.tasks, self.classes = train.classes.shape[1], train.class_count
        shape = (layers * len(seeds), self.tasks)
        self.groups = torch.arange(shape[0], device=self.device)
        """Numbers ``layer * seeds + seed`` of the groups that still learn."""
        drawn = [initial_weights(settings, seed, dimension, self.tasks * self.classes) for seed in seeds]
        rows = [torch.cat([weight, bias.unsqueeze(0)]) for weight, bias in drawn]
        self.parameters = torch.stack(rows).repeat(layers, 1, 1).to(self.device)
        """Shape (groups, dimension + 1, columns): the weights, and the biases as their last row."""
        self.adam = _AdamW(settings, self.parameters)
        self.judged = self.parameters
        """What dev judges: the parameters after an epoch, or their mean over its steps."""
        self.best = self.parameters.clone()
        self.best_loss = torch.full(shape, math.inf, device=self.device)
        self.best_epoch = torch.zeros(shape, dtype=torch.int64, device=self.device)
        self.waited = torch.zeros(shape, dtype=torch.int64, device=self.device)
        self.seen = _seen(train.classes, self.classes)
        if not exclude_unseen:
            self.seen.fill_(True)
        self.offset = torch.zeros(self.seen.shape, device=self.device).masked_fill_(~self.seen, -math.inf)
        self.batch = train.features.new_empty((0, dimension))
        self.minus_one = torch.full((), -1.0, device=self.device)
        self.masks = [torch.Generator(self.device).manual_seed(seed) for seed in seeds]
        self.dev_weights = torch.as_tensor(dev_weights(settings, dev.sentences), device=self.device)

    def run_epoch(self, epoch: int) -> None:
        """Make one step a batch for all groups that still learn."""
        active = sorted(set((self.groups % len(self.seeds)).tolist()))
        batches = [
            epoch_batches(self.settings, self.train.sentences, self.seeds[row], epoch) for row in active
        ]
        row_of = {seed: row for row, seed in enumerate(active)}
        rows = torch.tensor([row_of[seed] for seed in (self.groups % len(self.seeds)).tolist()])
        rows = rows.to(self.device)
        seeds, layers = self.groups % len(self.seeds), self.groups // len(self.seeds)
        # What is the same in all steps: an operation on a few numbers takes as long as one on a batch.
        step = _Step(
            rows=rows if len(active) > 1 or len(rows) > 1 else None,
            first=layers.unsqueeze(1) * self.train.features.shape[1],
            seeds=seeds.unsqueeze(1),
            offset=self.offset[seeds].view(len(seeds), 1, -1),
            active=active,
        )
        total, steps = torch.zeros_like(self.parameters), 0
        for items, weights in _stacked(batches):
            chosen, share = (torch.as_tensor(array, device=self.device) for array in (items, weights))
            self._step(chosen, share, step)
            steps += 1
            if self.settings.average:
                total += self.parameters
        self.judged = total / steps if self.settings.average else self.parameters

    def _step(self, items: Tensor, weights: Tensor, step: _Step) -> None:
        masks = self._dropout_masks(weights, step.active) if self.settings.dropout else None
        if step.rows is not None:
            items, weights = items[step.rows], weights[step.rows]
            masks = None if masks is None else masks[step.rows]
        (count, size), (_, _, dimension) = items.shape, self.train.features.shape
        flat = self.train.features.view(-1, dimension)
        if self.batch.shape[0] < count * size:
            self.batch = flat.new_empty((count * size, dimension))
        # A batch is read into the memory of the last one, which is mapped and partly in a cache.
        x = torch.index_select(flat, 0, (step.first + items).view(-1), out=self.batch[: count * size])
        x = x.view(count, size, dimension)
        if masks is not None:
            x = x * masks
        gold = self.train.classes[step.seeds, :, items].unsqueeze(-1)
        logits = torch.baddbmm(self.parameters[:, -1:] + step.offset, x, self.parameters[:, :-1])
        # The gradient of the mean cross-entropy by the logits: probabilities less the gold classes.
        error = torch.softmax(logits.view(count, size, self.tasks, self.classes), dim=-1)
        error.scatter_add_(-1, gold, self.minus_one.expand(gold.shape))
        error = error.mul_(weights[:, :, None, None]).view(count, size, -1)
        gradient = torch.cat([torch.bmm(x.transpose(1, 2), error), error.sum(dim=1, keepdim=True)], dim=1)
        self.adam.step(self.parameters, gradient)

    def _dropout_masks(self, weights: Tensor, active: Sequence[int]) -> Tensor:
        """Return the factors of the features: shape (active seeds, batch, dimension), the same in all layers."""
        share, dimension = self.settings.dropout, self.train.features.shape[2]
        masks = torch.zeros((*weights.shape, dimension), device=self.device)
        for mask, seed, size in zip(masks, active, (weights > 0).sum(dim=1).tolist(), strict=True):
            drawn = torch.rand((size, dimension), generator=self.masks[seed], device=self.device)
            mask[:size] = (drawn >= share) / (1 - share)
        return masks

    def judge(self, epoch: int) -> None:
        """Keep the weights of probes that improved on dev, and let go of groups whose probes have all stopped."""
        loss = self._dev_loss()
        if not bool(torch.isfinite(loss).all()):
            raise TrainingError(
                f"The loss of a probe is not finite after {epoch} epoch(s).",
                hint=f"Lower the learning rate, {self.settings.learning_rate:g}, or standardize the features.",
            )
        learning = self.waited[self.groups] < self.settings.patience
        better = learning & (loss < self.best_loss[self.groups])
        columns = better.repeat_interleave(self.classes, dim=1)
        self.best[self.groups] = torch.where(columns.unsqueeze(1), self.judged, self.best[self.groups])
        self.best_loss[self.groups] = torch.where(better, loss, self.best_loss[self.groups])
        self.best_epoch[self.groups] = torch.where(better, epoch, self.best_epoch[self.groups])
        waited = torch.where(better, 0, self.waited[self.groups] + 1)
        self.waited[self.groups] = torch.where(learning, waited, self.waited[self.groups])
        going = (self.waited[self.groups] < self.settings.patience).any(dim=1)
        if not bool(going.all()):
            self.groups, self.parameters = self.groups[going], self.parameters[going]
            self.adam.keep(going)

    def _dev_loss(self) -> Tensor:
        """Return the mean loss of every group on dev: shape (groups, tasks)."""
        seeds = self.groups % len(self.seeds)
        loss = torch.zeros((len(self.groups), self.tasks), device=self.device)
        total = torch.zeros_like(loss)
        layers = (self.groups // len(self.seeds)).tolist()
        for layer in sorted(set(layers)):
            group_rows = torch.tensor(
                [number for number, group_layer in enumerate(layers) if group_layer == layer]
            )
            group_rows = group_rows.to(self.device)
            weight, bias = self.judged[group_rows, :-1], self.judged[group_rows, -1]
            wide = weight.permute(1, 0, 2).reshape(weight.shape[1], -1)
            for start in range(0, self.dev.features.shape[1], DEV_ROWS):
                x = self.dev.features[layer, start : start + DEV_ROWS]
                logits = (x @ wide).view(len(x), len(group_rows), self.tasks, self.classes)
                logits = logits + (
                    bias.view(len(group_rows), self.tasks, -1) + self.offset[seeds[group_rows]]
                )
                gold = self.dev.classes[seeds[group_rows], :, start : start + DEV_ROWS].permute(2, 0, 1)
                in_train = self.seen[seeds[group_rows]].expand(len(x), -1, -1, -1)
                in_train = in_train.gather(-1, gold.unsqueeze(-1)).squeeze(-1)
                weights = self.dev_weights[start : start + DEV_ROWS, None, None] * in_train
                loss[group_rows] += torch.where(in_train, nll(logits, gold) * weights, 0).sum(dim=0)
                total[group_rows] += weights.sum(dim=0)
        return torch.where(total > 0, loss / total, 0)

    def trained(self) -> TrainedProbes:
        """Return the best weights in their final shapes."""
        seeds, layers = len(self.seeds), self.train.features.shape[0]
        dimension = self.train.features.shape[2]
        best = self.best.view(layers, seeds, dimension + 1, self.tasks, self.classes)
        weight, bias = best[:, :, :-1], best[:, :, -1] + self.offset
        return TrainedProbes(
            weight=weight.permute(1, 3, 0, 2, 4).contiguous(),
            bias=bias.permute(1, 2, 0, 3).contiguous(),
            epochs=self.best_epoch.view(layers, seeds, self.tasks).permute(1, 2, 0).contiguous(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """The numbers of the groups that all steps of an epoch share."""

    rows: Tensor | None
    """Shape (groups,): which of the active seeds' batches a group reads; None where there is one group."""
    first: Tensor
    """Shape (groups, 1): the row of the layer's first vector."""
    seeds: Tensor
    """Shape (groups, 1)."""
    offset: Tensor
    """Shape (groups, 1, columns): minus infinity for a class that is excluded, else 0."""
    active: Sequence[int]


class _AdamW:
    """AdamW (Loshchilov and Hutter 2019) of a tensor whose first axis is the groups."""

    def __init__(self, settings: ProbeSettings, parameters: Tensor) -> None:
        self._settings = settings
        self._first, self._second = torch.zeros_like(parameters), torch.zeros_like(parameters)
        self._steps = 0

    def step(self, parameters: Tensor, gradient: Tensor) -> None:
        """Change the parameters in place."""
        self._steps += 1
        first, second = BETAS
        rate, correction = self._settings.learning_rate, math.sqrt(1 - second**self._steps)
        self._first.lerp_(gradient, 1 - first)
        self._second.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        parameters.mul_(1 - rate * self._settings.weight_decay)
        scale = self._second.sqrt().div_(correction).add_(self._settings.epsilon)
        parameters.addcdiv_(self._first, scale, value=-rate / (1 - first**self._steps))

    def keep(self, going: Tensor) -> None:
        """Forget the groups that have stopped."""
        self._first, self._second = self._first[going], self._second[going]


def _seen(classes: Tensor, class_count: int) -> Tensor:
    """Return which classes occur: shape (seeds, tasks, classes) for classes of shape (seeds, tasks, n)."""
    occurs = torch.zeros((*classes.shape[:2], class_count), dtype=torch.bool, device=classes.device)
    return occurs.scatter_(-1, classes, True)


# In which order probes see the items: every seed has an order of its own in every epoch ----------------


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
    position = np.empty(int(numbers.max(initial=-1)) + 1, dtype=np.int64)
    position[generator.permutation(numbers)] = np.arange(len(numbers))
    order = np.argsort(position[sentences], kind="stable")
    batch_of = position[sentences][order] // settings.batch_size
    return np.split(order, np.flatnonzero(np.diff(batch_of)) + 1)


def dev_weights(settings: ProbeSettings, sentences: Numbers) -> FloatArray:
    """Return the weight of every item's loss in the dev loss: shape (n,), of sum 1.

    With batches of sentences the dev loss is the mean of batch means, as the released notebooks compute it.
    """
    if settings.batch_unit == "vectors":
        return np.full(len(sentences), 1 / max(1, len(sentences)), dtype=np.float32)
    ranks = np.unique(sentences, return_inverse=True)[1]
    batches = ranks // settings.batch_size
    sizes = np.bincount(batches)
    weights: FloatArray = (1 / (sizes[batches] * len(sizes))).astype(np.float32)
    return weights


def _stacked(batches: Sequence[Sequence[Numbers]]) -> Iterator[tuple[Numbers, FloatArray]]:
    """Yield step by step the items of several seeds: numbers and weights, both of shape (seeds, longest batch).

    The weights of a seed's items are those of a mean; places beyond the end of its batch have weight 0.
    """
    for step_batches in zip(*batches, strict=True):
        longest = max(map(len, step_batches))
        items = np.zeros((len(step_batches), longest), dtype=np.int64)
        weights = np.zeros((len(step_batches), longest), dtype=np.float32)
        for row, batch in enumerate(step_batches):
            items[row, : len(batch)] = batch
            weights[row, : len(batch)] = 1 / len(batch)
        yield items, weights


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarMix:
    """A mix that applies to hidden states as the model gives them."""

    layers: tuple[int, ...]
    shares: tuple[float, ...]
    """``softmax(a)``, one per layer."""
    gamma: float
    factors: torch.Tensor
    """Shape (layers, dimension): what the states are multiplied with before they are summed."""
    shift: torch.Tensor
    """Shape (dimension,): what is added then."""
    weight: torch.Tensor
    """Shape (dimension, classes)."""
    bias: torch.Tensor
    """Shape (classes,); minus infinity for classes that are not in train."""

    @property
    def center_of_gravity(self) -> float:
        """The mean layer number, weighted by the shares."""
        return float(sum(layer * share for layer, share in zip(self.layers, self.shares, strict=True)))

    def predict(self, states: torch.Tensor) -> torch.Tensor:
        """Return class numbers, shape (n,), of states of shape (layers, n, dimension)."""
        mixed = self.shift.expand(states.shape[1], -1).clone()
        for layer, factors in zip(states, self.factors, strict=True):
            mixed.addcmul_(layer, factors)
        return (mixed @ self.weight + self.bias).argmax(dim=-1)


def train_mix(
    train: tuple[States, Targets],
    dev: tuple[States, Targets],
    settings: ProbeSettings,
    *,
    layers: tuple[int, ...],
    scaling: Scaling,
    device: torch.device,
) -> ScalarMix:
    """Return the mix with the first seed at its best epoch on dev.

    All layers of a batch are read at a time, so that they need not be in memory together. Raises `TrainingError` for a
    loss that is not finite.
    """
    learner = _Learner(train[0].dimension, train[1].counts(), layers, scaling, settings, device)
    in_train = train[1].counts()[dev[1].classes] > 0
    judged = replace(
        dev[1],
        vectors=dev[1].vectors[in_train],
        classes=dev[1].classes[in_train],
        sentences=dev[1].sentences[in_train],
    )
    weights = torch.as_tensor(dev_weights(settings, dev[1].sentences)[in_train], device=device)
    best, waited, parameters = math.inf, 0, learner.copy()
    for epoch in range(settings.max_epochs):
        learner.run_epoch(*train, epoch)
        loss = learner.dev_loss(dev[0], judged, weights)
        if not math.isfinite(loss):
            raise TrainingError(f"The loss of the scalar mix is not finite after {epoch + 1} epoch(s).")
        waited = 0 if loss < best else waited + 1
        if loss < best:
            best, parameters = loss, learner.copy()
        if waited >= settings.patience:
            break
    return learner.mix(parameters)


class _Learner:
    def __init__(
        self,
        dimension: int,
        counts: Numbers,
        layers: tuple[int, ...],
        scaling: Scaling,
        settings: ProbeSettings,
        device: torch.device,
    ) -> None:
        self.layers, self.scaling, self.settings, self.device = layers, scaling, settings, device
        self.mean = torch.as_tensor(scaling.mean[:, None], dtype=torch.float32, device=device)
        self.inverse = torch.as_tensor(1 / scaling.scale[:, None], dtype=torch.float32, device=device)
        self.offset = torch.zeros(len(counts), device=device)
        self.offset[torch.as_tensor(counts == 0)] = -math.inf
        self.seed, rate = settings.seeds[0], settings.learning_rate
        start = initial_weights(settings, self.seed, dimension, len(counts))
        numbers = [torch.zeros(len(layers)), torch.ones(())]
        self.parameters = [tensor.clone().to(device).requires_grad_() for tensor in (*numbers, *start)]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": self.parameters[:2], "lr": SCALAR_RATE * rate, "weight_decay": 0.0},
                {"params": self.parameters[2:], "lr": rate, "weight_decay": settings.weight_decay},
            ],
            eps=settings.epsilon,
        )
        self.masks = torch.Generator(device).manual_seed(self.seed)

    def copy(self) -> list[torch.Tensor]:
        return [parameter.detach().clone() for parameter in self.parameters]

    def _nll(
        self, states: States, targets: Targets, items: Numbers | slice, *, learning: bool
    ) -> torch.Tensor:
        numbers, gamma, weight, bias = self.parameters
        rows = targets.vectors[items]
        x = read_features(states, rows, self.layers, self.device)
        x.sub_(self.mean).mul_(self.inverse)
        mixed = (torch.softmax(numbers, dim=0) @ x.view(len(self.layers), -1)).view(len(rows), -1)
        mixed = gamma * mixed
        if learning and self.settings.dropout:
            drawn = torch.rand(mixed.shape, generator=self.masks, device=self.device)
            mixed = mixed * (drawn >= self.settings.dropout) / (1 - self.settings.dropout)
        gold = torch.as_tensor(targets.classes[items], device=self.device)
        return nll(mixed @ weight + bias + self.offset, gold)

    def run_epoch(self, states: States, targets: Targets, epoch: int) -> None:
        for items in epoch_batches(self.settings, targets.sentences, self.seed, epoch):
            self.optimizer.zero_grad()
            loss = self._nll(states, targets, items, learning=True).mean()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()

    @torch.no_grad()
    def dev_loss(self, states: States, targets: Targets, weights: torch.Tensor) -> float:
        total = 0.0
        for start in range(0, len(targets), MIX_ROWS):
            rows = slice(start, start + MIX_ROWS)
            total += float((self._nll(states, targets, rows, learning=False) * weights[rows]).sum())
        return total / float(weights.sum())

    def mix(self, kept: Sequence[torch.Tensor]) -> ScalarMix:
        """Return the mix of these parameters, with the scaling of the features folded into it."""
        numbers, gamma, weight, bias = kept
        shares = torch.softmax(numbers.double(), dim=0).cpu().numpy()
        factors = float(gamma) * shares[:, None] / self.scaling.scale
        shift = -(factors * self.scaling.mean).sum(axis=0)
        return ScalarMix(
            layers=self.layers,
            shares=tuple(shares.tolist()),
            gamma=float(gamma),
            factors=torch.as_tensor(factors.astype(np.float32), device=self.device),
            shift=torch.as_tensor(shift.astype(np.float32), device=self.device),
            weight=weight,
            bias=bias + self.offset,
        )
