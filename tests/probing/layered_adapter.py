"""A plugin with models whose layers know the class of a word, its first letter, more or less well.

``layered:sound`` is the model; other refs misbehave as they say. What is asked of it goes to the file that
``LAYERED_LOG`` names, one sentence a line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from harness.hookspecs import hookimpl
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import Capability, ModelDescription
from harness.models.options import AdapterOptions
from harness.models.requests import FloatArray, WordCoverage

DIMENSION = 12
KNOWLEDGE = (0.0, 0.9, 0.4)
"""How well the layers separate the classes."""
INVISIBLE = "~"
"""A word that the tokenizer turns into nothing."""
LONG = 9
"""Sentences of more words are read in two parts."""


class LayeredOptions(AdapterOptions):
    """None."""


def describe(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return what it offers."""
    offers = frozenset({Capability.EXPOSES_HIDDEN_STATES})
    return ModelDescription(adapter="layered", ref=ref, offers=offers, revision="r1")


def open_model(description: ModelDescription, options: AdapterOptions) -> Layered:
    """Return the model."""
    return Layered(description.ref)


def _noise(*parts: object) -> FloatArray:
    seed = int.from_bytes(blake2b(repr(parts).encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).normal(size=DIMENSION).astype(np.float32)


class Layered:
    """States are noise of the word and its sentence, and, in trained models, a direction of its class."""

    def __init__(self, ref: str, drawn: int | None = None) -> None:
        self._ref = ref
        self._drawn = drawn
        self._asked = 0

    def identity(self) -> Mapping[str, str]:
        """Return its name."""
        return {"adapter": "layered", "ref": self._ref, "drawn": str(self._drawn)}

    def close(self) -> None:
        """Do nothing."""

    def untrained(self, seed: int) -> Layered:
        """Return one that knows nothing."""
        return Layered(self._ref, seed)

    def layer_count(self) -> int:
        """Return 3."""
        return len(KNOWLEDGE)

    def word_coverage(self, sentences: Sequence[Sequence[str | None]]) -> list[WordCoverage]:
        """Return which words are invisible, and which sentences are long."""
        return [
            WordCoverage(
                empty=tuple(number for number, word in enumerate(words) if word == INVISIBLE),
                windows=1 + (len(words) > LONG),
            )
            for words in sentences
        ]

    def hidden_states(
        self,
        sentences: Sequence[Sequence[str | None]],
        layers: Sequence[int],
        *,
        sentence_vector: bool = False,
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield the states, the last sentence first."""
        for index in reversed(range(len(sentences))):
            words = list(sentences[index])
            if self._drawn is None and (log := os.environ.get("LAYERED_LOG")):
                with Path(log).open("a", encoding="utf-8") as file:
                    file.write(json.dumps(words) + "\n")
            if "stop" in words and not os.environ.get("LAYERED_PATIENT"):
                raise KeyboardInterrupt
            own: list[Any] = [words[0], *words] if sentence_vector and words else words
            rows = [[self._vector(layer, word, words) for word in own] for layer in layers]
            yield index, np.array(rows, dtype=np.float32).reshape(len(layers), len(own), DIMENSION)

    def _vector(self, layer: int, word: str | None, words: list[str | None]) -> FloatArray:
        if word == INVISIBLE:
            return np.zeros(DIMENSION, dtype=np.float32)
        noise = _noise(layer, word, words, self._drawn)
        if self._drawn is not None:
            return noise
        known: FloatArray = noise + np.float32(KNOWLEDGE[layer]) * _noise("class", (word or "?")[:1])
        return known


@hookimpl
def harness_register_adapters() -> list[AdapterEntry]:
    """Return the adapter ``layered``."""
    return [
        AdapterEntry(
            name="layered",
            target="layered_adapter:open_model",
            describe="layered_adapter:describe",
            options="layered_adapter:LayeredOptions",
            summary="It exposes its hidden states.",
        )
    ]
