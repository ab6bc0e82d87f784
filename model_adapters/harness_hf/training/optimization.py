"""The optimiser of a training stage, and its learning rate at every step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from transformers.optimization import Adafactor, get_scheduler
from transformers.trainer_pt_utils import get_parameter_names

from harness import TrainingError
from harness.models import TrainingSettings

UNDECAYED = (r"bias", r"layernorm", r"rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)")
"""Names of weights that do not decay, as in transformers' Trainer."""


def make_optimizer(network: torch.nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Return the optimiser of all weights that require a gradient; raises `TrainingError` where none does.

    AdamW is torch's, fused, with betas 0.9 and 0.999. Adafactor runs at the learning rate of the settings, neither
    relative to the step nor to the weights' size. Biases and normalisations do not decay. All as in
    transformers' Trainer.
    """
    name_parameters: Any = get_parameter_names  # untyped
    names = set(name_parameters(network, [torch.nn.LayerNorm], list(UNDECAYED)))
    trained = [(name, weight) for name, weight in network.named_parameters() if weight.requires_grad]
    groups: list[dict[str, Any]] = [
        {
            "params": [weight for name, weight in trained if name in names],
            "weight_decay": settings.weight_decay,
        },
        {"params": [weight for name, weight in trained if name not in names], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if not groups:
        raise TrainingError("There is nothing to train: all weights are frozen.")
    if settings.optimizer == "adafactor":
        make: Any = Adafactor  # untyped
        adafactor: torch.optim.Optimizer = make(
            groups, lr=settings.learning_rate, scale_parameter=False, relative_step=False
        )
        return adafactor
    return torch.optim.AdamW(groups, lr=settings.learning_rate, eps=settings.adam_epsilon, fused=True)


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
