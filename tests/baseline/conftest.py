from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.models.capabilities import FitOptions, HeadSpec, TrainingSettings
from harness.models.options import parse_options
from harness_baseline import BASELINE
from harness_baseline.model import Baseline

Fit = Callable[..., Any]


@pytest.fixture
def open_baseline() -> Callable[..., Baseline]:
    """Return a function that opens the baseline of a ref with options."""

    def opened(ref: str, **options: str) -> Baseline:
        parsed = parse_options(BASELINE, options)
        model = BASELINE.open(BASELINE.describe_model(ref, parsed), parsed)
        assert isinstance(model, Baseline)
        return model

    return opened


@pytest.fixture
def fit(open_baseline: Callable[..., Baseline], tmp_path_factory: pytest.TempPathFactory) -> Fit:
    """Return a function that fits a baseline and returns the fitted model."""

    def fitted(
        ref: str | Baseline,
        train: Sequence[Any],
        spec: HeadSpec,
        *,
        seed: int = 1,
        directory: Path | None = None,
        epochs: float = 3,
        max_steps: int | None = None,
    ) -> Any:
        settings = TrainingSettings(learning_rate=2e-5, epochs=epochs, batch_size=32, max_steps=max_steps)
        folder = directory or tmp_path_factory.mktemp("fit")
        model = open_baseline(ref) if isinstance(ref, str) else ref
        return model.fit(train, [], spec, FitOptions(directory=folder, settings=settings, seed=seed))

    return fitted
