"""The optimiser of a training stage: its groups, its learning rate at every step, clipping and loss scaling."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from transformers.optimization import Adafactor, get_scheduler
from transformers.trainer_pt_utils import get_parameter_names

from harness import TrainingError, TrainingSettings

__all__ = ["Optimization", "learning_rate"]

UNDECAYED = (r"bias", r"layernorm", r"rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)")
"""Names of weights that do not decay, as in transformers' Trainer."""


class Optimization:
    """One optimiser and what is done to gradients before it.

    AdamW is torch's, with betas 0.9 and 0.999. Adafactor runs at the learning rate of the settings, neither
    relative to the step nor to the weights' size. Biases and normalisations do not decay. All as in
    transformers' Trainer.
    """

    def __init__(
        self, network: torch.nn.Module, settings: TrainingSettings, total: int, *, scaled_on: str | None
    ) -> None:
        self._settings = settings
        name_parameters: Any = get_parameter_names  # untyped
        names = set(name_parameters(network, [torch.nn.LayerNorm], list(UNDECAYED)))
        trained = [(name, one) for name, one in network.named_parameters() if one.requires_grad]
        decayed = [one for name, one in trained if name in names]
        others = [one for name, one in trained if name not in names]
        self.parameters: Sequence[torch.nn.Parameter] = [*decayed, *others]
        groups: list[dict[str, Any]] = [
            {"params": decayed, "weight_decay": settings.weight_decay},
            {"params": others, "weight_decay": 0.0},
        ]
        self.optimizer = _optimizer([group for group in groups if group["params"]], settings)
        self._learning_rate = learning_rate(settings, total, self.optimizer)
        self._scaler = torch.amp.GradScaler(scaled_on or "cpu", enabled=scaled_on is not None)

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradients of a loss, which fp16 scales so that small ones do not vanish."""
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]

    def clear(self) -> None:
        """Forget all gradients."""
        self.optimizer.zero_grad(set_to_none=True)

    def update(self, step: int) -> None:
        """Clip the gradients and take the step with this number, counted from 0."""
        for group in self.optimizer.param_groups:
            group["lr"] = self._learning_rate(step)
        self._scaler.unscale_(self.optimizer)
        if self._settings.max_grad_norm > 0:
            torch.nn.utils.clip_grad_norm_(self.parameters, self._settings.max_grad_norm)
        self._scaler.step(self.optimizer)
        self._scaler.update()
        self.clear()

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the tensors of the optimiser's state, by the parameter's number and the state's name."""
        state: Mapping[int, Mapping[str, Any]] = self.optimizer.state_dict()["state"]
        return {
            f"{number}.{name}": value
            for number, values in state.items()
            for name, value in values.items()
            if isinstance(value, torch.Tensor)
        }

    def numbers(self) -> dict[str, Any]:
        """Return what else belongs to the state, as plain JSON."""
        state: Mapping[int, Mapping[str, Any]] = self.optimizer.state_dict()["state"]
        plain = {
            f"{number}.{name}": value
            for number, values in state.items()
            for name, value in values.items()
            if not isinstance(value, torch.Tensor)
        }
        return {"state": plain, "scaler": self._scaler.state_dict()}

    def restore(self, tensors: Mapping[str, torch.Tensor], numbers: Mapping[str, Any]) -> None:
        """Restore what `tensors` and `numbers` returned; raises `KeyError` or `ValueError` for other state."""
        state: dict[int, dict[str, Any]] = {}
        for key, value in [*tensors.items(), *numbers["state"].items()]:
            number, _, name = key.partition(".")
            state.setdefault(int(number), {})[name] = value
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        if numbers["scaler"]:
            self._scaler.load_state_dict(numbers["scaler"])


def learning_rate(
    settings: TrainingSettings, total: int, optimizer: torch.optim.Optimizer
) -> Callable[[int], float]:
    """Return the learning rate by step, counted from 0: up during the warm-up, then down to 0 or constant.

    These are `get_linear_schedule_with_warmup` and `get_constant_schedule_with_warmup` of transformers.
    """
    warmup = max(settings.warmup_steps, math.ceil(settings.warmup_share * total))
    name = "constant_with_warmup" if settings.lr_schedule == "constant" else "linear"
    make: Any = get_scheduler  # untyped
    [share, *_] = make(name, optimizer, num_warmup_steps=warmup, num_training_steps=total).lr_lambdas
    return lambda step: settings.learning_rate * float(share(step))


def _optimizer(groups: list[dict[str, Any]], settings: TrainingSettings) -> torch.optim.Optimizer:
    if not groups:
        raise TrainingError("There is nothing to train: all weights are frozen.")
    if settings.optimizer == "adafactor":
        make: Any = Adafactor  # untyped
        adafactor: torch.optim.Optimizer = make(
            groups, lr=settings.learning_rate, scale_parameter=False, relative_step=False
        )
        return adafactor
    return torch.optim.AdamW(groups, lr=settings.learning_rate, eps=settings.adam_epsilon)
