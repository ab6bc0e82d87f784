"""A plugin whose models score on their dev set what their learning rate says: ``tunable:NAME``.

Its source is installed by a fixture; it is in a file of its own so that it is typed and checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import TrainingError
from harness.hookspecs import hookimpl
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import Capability, FitOptions, Head, HeadSpec, ModelDescription, TextInput
from harness.models.options import AdapterOptions
from harness.models.requests import DevScore, FloatArray

BEST = 3e-5
"""The learning rate with the highest score; those above 1 cannot be trained with."""
FITS: list[Mapping[str, Any]] = []
"""The settings of every training."""


class TunableOptions(AdapterOptions):
    """Options of ``tunable:*``."""


def describe(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return a description: it must be fitted first, and ``tunable:large`` has 24 layers."""
    fits = frozenset({Capability.FITS})
    return ModelDescription(
        adapter="tunable",
        ref=ref,
        offers=fits,
        after_fit={Head.CLASSIFICATION: fits | {Capability.CLASSIFIES}},
        layers=24 if ref == "large" else 12,
        revision="r1",
    )


def open_model(description: ModelDescription, options: AdapterOptions) -> Tunable:
    """Return the model."""
    return Tunable(description.ref)


class Tunable:
    """A model that says the first label."""

    def __init__(self, ref: str, dev: float | None = None) -> None:
        self._ref = ref
        self._dev = dev

    def identity(self) -> Mapping[str, str]:
        """Return its name."""
        return {"adapter": "tunable", "ref": self._ref}

    def close(self) -> None:
        """Do nothing."""

    def fit(
        self, train: Sequence[Any], validation: Sequence[Any], spec: HeadSpec, options: FitOptions
    ) -> Tunable:
        """Write down what the dev set scores."""
        settings = options.settings
        FITS.append(asdict(settings))
        if settings.learning_rate > 1:
            raise TrainingError("The loss is NaN at step 3.")
        measured = settings.select_best and validation and self._ref != "silent"
        dev = 0.5 - abs(settings.learning_rate - BEST) * 1e4 if measured else None
        (options.directory / "dev.json").write_text(json.dumps(dev), encoding="utf-8")
        return self.load_fit(options.directory, spec)

    def load_fit(self, directory: Path, spec: HeadSpec) -> Tunable:
        """Return the fitted model."""
        return Tunable(self._ref, json.loads((directory / "dev.json").read_text(encoding="utf-8")))

    def dev_score(self) -> DevScore | None:
        """Return what `fit` wrote."""
        return None if self._dev is None else DevScore(metric="accuracy", value=self._dev)

    def classify(self, inputs: Sequence[TextInput], labels: Sequence[str]) -> FloatArray:
        """Return scores of shape (inputs, labels)."""
        return np.tile(np.arange(len(labels), 0, -1, dtype=np.float32), (len(inputs), 1))


@hookimpl
def harness_register_adapters() -> list[AdapterEntry]:
    """Return the adapter ``tunable``."""
    return [
        AdapterEntry(
            name="tunable",
            target="tunable_adapter:open_model",
            describe="tunable_adapter:describe",
            options="tunable_adapter:TunableOptions",
            summary="It can be tuned.",
        )
    ]
