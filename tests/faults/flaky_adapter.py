"""A plugin whose model ``flaky:it`` fails on Devanagari (Hindi) while the environment has FLAKY.

With FLAKY_SLEEP it also waits so many seconds before every block, and with FLAKY_KILL the second process of a run
kills itself at that block of its own, counted from 1, when the first process has written an answer down. It streams
blocks of a few items.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.hookspecs import hookimpl
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import Capability, ModelDescription, TextInput
from harness.models.options import AdapterOptions
from harness.models.requests import Ability, Answered, Call, FloatArray


class FlakyOptions(AdapterOptions):
    """Options of ``flaky:*``."""

    says: int = 0
    """Number of the label."""


def describe(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return a description."""
    labels = ("contradiction", "entailment", "neutral")
    return ModelDescription(
        adapter="flaky", ref=ref, offers=frozenset({Capability.CLASSIFIES}), labels=labels
    )


class Flaky:
    """A model that says one label, or fails."""

    def __init__(self, description: ModelDescription, options: FlakyOptions) -> None:
        self._says = options.says
        self._blocks = 0

    def identity(self) -> Mapping[str, str]:
        """Return what it says."""
        return {"adapter": "flaky", "says": str(self._says)}

    def close(self) -> None:
        """Do nothing."""

    def block_characters(self, ability: Ability) -> int:
        """Return a few items' worth."""
        return 300

    def stream(self, call: Call, blocks: Sequence[Sequence[Any]]) -> Iterator[Answered]:
        """Yield the answers block by block."""
        start = 0
        for block in blocks:
            if call.stopping():
                return
            answers: Any = self.classify(block, **call.arguments)
            yield Answered(indices=range(start, start + len(block)), answers=answers)
            start += len(block)

    def classify(self, inputs: Sequence[TextInput], labels: Sequence[str]) -> FloatArray:
        """Return scores of shape (inputs, labels)."""
        time.sleep(float(os.environ.get("FLAKY_SLEEP", "0")))
        self._blocks += 1
        if "FLAKY_KILL" in os.environ:
            self._die_after_the_other_answered()
        hindi = any("\u0900" <= letter <= "\u097f" for item in inputs for letter in item.text)
        if hindi and os.environ.get("FLAKY"):
            raise RuntimeError("out of order")
        return np.eye(len(labels), dtype=np.float32)[[self._says] * len(inputs)]

    def _die_after_the_other_answered(self) -> None:
        answered = Path(os.environ["MARK"], "answered")
        if os.environ.get("RANK") == "0" and self._blocks == 2:  # the first block is in the journal
            answered.touch()
        if os.environ.get("RANK") == "1" and os.environ["FLAKY_KILL"] == str(self._blocks):
            while not answered.exists():
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGKILL)


@hookimpl
def harness_register_adapters() -> list[AdapterEntry]:
    """Return the adapter ``flaky``."""
    return [
        AdapterEntry(
            name="flaky",
            target="flaky_adapter:Flaky",
            describe="flaky_adapter:describe",
            options="flaky_adapter:FlakyOptions",
            summary="It fails where the environment says so.",
        )
    ]
