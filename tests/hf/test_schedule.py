"""The order of training examples, and the learning rate of each step."""

from __future__ import annotations

import pytest
import torch

from harness.models import TrainingSettings
from harness_hf.training.batches import StepBatches
from harness_hf.training.engine import learning_rate


def test_every_epoch_and_seed_has_an_order_of_its_own() -> None:
    batches = StepBatches(20, batch_size=8, seed=1)
    epochs = [[index for step in range(3 * n, 3 * n + 3) for index in batches.examples(step)] for n in (0, 1)]
    assert [sorted(order) for order in epochs] == [list(range(20))] * 2
    assert epochs[0] != epochs[1]
    assert StepBatches(20, batch_size=8, seed=1).examples(3) == epochs[1][:8]
    assert StepBatches(20, batch_size=8, seed=2).examples(3) != epochs[1][:8]


@pytest.mark.parametrize(("step", "share"), [(0, 0.0), (5, 0.5), (10, 1.0), (55, 0.5)])
def test_the_rate_rises_over_a_share_of_the_steps_and_falls(step: int, share: float) -> None:
    settings = TrainingSettings(
        learning_rate=2e-3, epochs=1, batch_size=8, warmup_share=0.1, lr_schedule="linear"
    )
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=1.0)
    assert learning_rate(settings, 100, optimizer)(step) == pytest.approx(2e-3 * share)
