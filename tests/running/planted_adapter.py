"""A plugin whose models misbehave: ``planted:NAME`` does what NAME says when it sees Devanagari (Hindi).

Its source is installed by the fixture `planted`; it is in a file of its own so that it is typed and checked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.data.records import Prediction
from harness.errors import TrainingError
from harness.hookspecs import hookimpl
from harness.kinds.methods import Method, MethodContext
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import Capability, FitOptions, Head, HeadSpec, ModelDescription, TextInput
from harness.models.options import AdapterOptions
from harness.models.requests import FloatArray
from harness.storage.results import CellResult

FITTED = ("fit", "nan-loss", "broken-fit", "lost-head")


class PlantedOptions(AdapterOptions):
    """Options of ``planted:*``."""

    size: int = 1
    """How large it is."""


def describe(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return a description: the names in FITTED must be fitted first, the others classify as they are."""
    fits = frozenset({Capability.FITS})
    classifies = frozenset({Capability.CLASSIFIES})
    return ModelDescription(
        adapter="planted",
        ref=ref,
        offers=fits if ref in FITTED else classifies,
        after_fit={Head.CLASSIFICATION: fits | classifies},
        labels=() if ref in FITTED else ("contradiction", "entailment", "neutral"),
        revision="r1",
        note="It was planted.",
    )


def open_model(description: ModelDescription, options: AdapterOptions) -> Planted:
    """Return the model."""
    return Planted(description.ref)


class Planted:
    """A model that says the first label, until it misbehaves."""

    def __init__(self, ref: str) -> None:
        self._ref = ref

    def identity(self) -> Mapping[str, str]:
        """Return its name."""
        return {"adapter": "planted", "ref": self._ref}

    def close(self) -> None:
        """Do nothing."""

    def fit(
        self, train: Sequence[Any], validation: Sequence[Any], spec: HeadSpec, options: FitOptions
    ) -> Planted | Headless:
        """Write a file, or fail."""
        if self._ref == "nan-loss":
            raise TrainingError("The loss is NaN at step 3.", hint="Lower the learning rate.")
        if self._ref == "broken-fit":
            raise RuntimeError("out of memory")
        (options.directory / "weights.txt").write_text(f"{len(train)} {len(validation)}", encoding="utf-8")
        return self

    def load_fit(self, directory: Path, spec: HeadSpec) -> Planted | Headless:
        """Return itself, or something without the head."""
        assert (directory / "weights.txt").is_file()
        return Headless() if self._ref == "lost-head" else self

    def classify(self, inputs: Sequence[TextInput], labels: Sequence[str]) -> FloatArray:
        """Return scores of shape (inputs, labels)."""
        scores = np.zeros((len(inputs), len(labels)), dtype=np.float32)
        scores[:, 0] = 1
        if not any("\u0900" <= letter <= "\u097f" for item in inputs for letter in item.text):
            return scores
        if self._ref == "raises":
            raise RuntimeError("planted failure")
        if self._ref == "interrupt":
            raise KeyboardInterrupt
        if self._ref == "nan":
            scores[-1, -1] = np.nan
        if self._ref == "count":
            return scores[:-1]
        if self._ref == "columns":
            return scores[:, :-1]
        return scores


class Headless:
    """A model without a head."""

    def identity(self) -> Mapping[str, str]:
        """Return nothing."""
        return {}

    def close(self) -> None:
        """Do nothing."""


def _answers(examples: Sequence[Any], context: MethodContext) -> list[Prediction]:
    labels = context.spec.label_names
    return [Prediction(id=example.id, output={"label": labels[0], "scores": []}) for example in examples]


def _reversed(adapter: Any, examples: Sequence[Any], context: MethodContext) -> list[Prediction]:
    return _answers(examples, context)[::-1]


def _too_few(adapter: Any, examples: Sequence[Any], context: MethodContext) -> list[Prediction]:
    return _answers(examples, context)[:-1]


@hookimpl
def harness_register_adapters() -> list[AdapterEntry]:
    """Return the adapter ``planted``."""
    return [
        AdapterEntry(
            name="planted",
            target="planted_adapter:open_model",
            describe="planted_adapter:describe",
            options="planted_adapter:PlantedOptions",
            summary="It misbehaves.",
        )
    ]


@hookimpl
def harness_register_methods() -> list[Method]:
    """Return methods that break the order or the count of the examples."""
    return [
        Method(
            name=name,
            kind="sequence_classification",
            requires=Capability.CLASSIFIES,
            protocols=frozenset({"frozen"}),
            predict=predict,
        )
        for name, predict in (("reversed", _reversed), ("too_few", _too_few))
    ]


@hookimpl
def harness_cell_finished(cell: CellResult) -> None:
    """Raise where the test asks for it."""
    if os.environ.get("PLANTED_OBSERVER"):
        raise ValueError(f"observed {cell.language}")


@hookimpl
def harness_run_finished(run: Path) -> None:
    """Raise where the test asks for it."""
    if os.environ.get("PLANTED_OBSERVER"):
        raise ValueError(f"observed {run.name}")
