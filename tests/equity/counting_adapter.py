"""A plugin with a model whose sub-words are pieces of three characters; ``?`` is unknown to it.

``counts:embeds`` embeds, ``counts:classifies`` and ``counts:chooses`` give equal scores (16 sub-words at most, each),
``counts:writes`` writes the option `says`, ``counts:ranks`` ranks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from harness.hookspecs import hookimpl
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import Capability, Choice, EmbedOptions, ModelDescription, TextInput
from harness.models.options import AdapterOptions
from harness.models.requests import (
    FloatArray,
    Generated,
    GenerateOptions,
    LikelihoodAnswer,
    LikelihoodRequest,
    Prompt,
    SubwordCount,
)

CALLS: list[int] = []
"""How many texts every call counted."""
OFFERS = {
    "embeds": Capability.EMBEDS,
    "classifies": Capability.CLASSIFIES,
    "chooses": Capability.CHOOSES_BEST,
    "writes": Capability.GENERATES,
    "ranks": Capability.SCORES_CONTINUATIONS,
}
ROOM = 16


class CountingOptions(AdapterOptions):
    """Options of ``counts:*``."""

    says: str = Field(default="yes", description="What it writes.")


def describe(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return what a model of this name offers."""
    labels = ("entailment", "neutral", "contradiction") if ref == "classifies" else ()
    return ModelDescription(adapter="counts", ref=ref, offers=frozenset({OFFERS[ref]}), labels=labels)


def open_model(description: ModelDescription, options: CountingOptions) -> Counts:
    """Return the model."""
    return Counts(options)


class Counts:
    """Counts a sub-word for every three characters that are begun."""

    def __init__(self, options: CountingOptions) -> None:
        self._options = options

    def identity(self) -> Mapping[str, str]:
        """Return its name and what it says."""
        return {"adapter": "counts", "says": self._options.says}

    def close(self) -> None:
        """Do nothing."""

    def subword_counts(self, texts: Sequence[str]) -> list[SubwordCount]:
        """Return a third of the characters of every text, rounded up."""
        CALLS.append(len(texts))
        return [SubwordCount(tokens=-(-len(text) // 3), unknown=text.count("?")) for text in texts]

    def text_room(self, texts: int, options: EmbedOptions | None = None) -> int | None:
        """Return the same for all."""
        return ROOM

    def embed(self, texts: Sequence[str], *, side: Any, options: Any = None) -> FloatArray:
        """Return vectors that texts have by chance."""
        found = [np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)[:8] for text in texts]
        rows = np.array(found, dtype=np.float32).reshape(len(texts), 8) + 1
        unit: FloatArray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def classify(self, inputs: Sequence[TextInput], labels: Sequence[str]) -> FloatArray:
        """Return equal scores."""
        return np.zeros((len(inputs), len(labels)), dtype=np.float32)

    def choose(self, items: Sequence[Choice]) -> list[tuple[float, ...]]:
        """Return equal scores."""
        return [(0.5,) * len(item.choices) for item in items]

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        """Return -1 for every word, and cut contexts of more than 60 characters."""
        return [
            LikelihoodAnswer(
                token_logprobs=(-1.0,) * len(request.continuation.split()),
                is_greedy=False,
                byte_length=len(request.continuation.encode()),
                truncated=len(str(request.context)) > 60,
            )
            for request in requests
        ]

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        """Return the option `says`."""
        text = self._options.says
        return [Generated(text=text, tokens=len(text.split()) + 1, finished=True) for _ in prompts]

    def token_counts(self, prompts: Sequence[Prompt]) -> list[int]:
        """Return the characters of every prompt."""
        return [len(str(prompt)) for prompt in prompts]

    def context_length(self) -> int | None:
        """Return None."""


@hookimpl
def harness_register_adapters() -> list[AdapterEntry]:
    """Return the adapter ``counts``."""
    return [
        AdapterEntry(
            name="counts",
            target="counting_adapter:open_model",
            describe="counting_adapter:describe",
            options="counting_adapter:CountingOptions",
            summary="It counts sub-words.",
        )
    ]
