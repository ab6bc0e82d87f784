"""The scalar mix: one probe over a learnt weighted mean of all layers, as one more pseudo-layer.

``gamma * sum(softmax(a)_l * h_l)`` (Peters et al. 2018, equation 1; Tenney et al. 2019a). The weights say where a
property lies; their centre of gravity is ``sum(l * softmax(a)_l)`` (Tenney et al. 2019b, section 2.2,
https://aclanthology.org/P19-1452). Features are standardized first where the settings say so: a layer with larger
numbers would need smaller weights otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from harness import TrainingError
from harness_probing.features import Scaling, read_features
from harness_probing.problem import Numbers, Targets
from harness_probing.settings import ProbeSettings
from harness_probing.states import States
from harness_probing.training import dev_weights, epoch_batches, initial_weights, nll

ROWS = 1_024
SCALAR_RATE = 10.0
"""The mixing numbers learn so many times faster than the probe: a step of Adam moves each number by the rate."""


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
        for start in range(0, len(targets), ROWS):
            rows = slice(start, start + ROWS)
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
