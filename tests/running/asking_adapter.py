"""A plugin with a model that ranks, writes and is fitted to write; what it is asked is kept in `CALLS`.

A token is a word. Which reference it is opened by says what it can do: ``asks:ranks``, ``asks:writes``, ``asks:both``,
``asks:fits`` (text to text), ``asks:embeds``; ``asks:states`` and ``asks:learns`` (tags) are only described.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from harness.hookspecs import hookimpl
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import Capability, FitOptions, Head, HeadSpec, ModelDescription
from harness.models.options import AdapterOptions, ReasoningOptions
from harness.models.requests import (
    FloatArray,
    Generated,
    GenerateOptions,
    LikelihoodAnswer,
    LikelihoodRequest,
    Prompt,
)

CALLS: list[tuple[str, Any]] = []
"""The name of a method and what it got, in the order of the calls."""
OFFERS = {
    "ranks": {Capability.SCORES_CONTINUATIONS, Capability.COUNTS_TOKENS},
    "writes": {Capability.GENERATES, Capability.COUNTS_TOKENS},
    "both": {Capability.SCORES_CONTINUATIONS, Capability.GENERATES, Capability.COUNTS_TOKENS},
    "fits": {Capability.FITS},
    "embeds": {Capability.EMBEDS},
    "states": {Capability.EXPOSES_HIDDEN_STATES},
    "learns": {Capability.EXPOSES_HIDDEN_STATES, Capability.FITS},
}
AFTER_FIT = {
    "fits": {Head.TEXT_TO_TEXT: frozenset({Capability.FITS, Capability.GENERATES})},
    "learns": {Head.TAGGING: frozenset({*OFFERS["learns"], Capability.TAGS})},
}


class AskingOptions(ReasoningOptions):
    """Options of ``asks:*``."""

    says: str = Field(default="", description="What it writes; of answers parted by | the seed takes one.")
    context: int = Field(default=0, description="Words that a prompt may have; 0 for any number.")
    cuts: bool = Field(default=False, description="Whether it cuts every prompt.")


def describe(ref: str, options: AdapterOptions) -> ModelDescription:
    """Return what a model of this name offers."""
    offers, after = frozenset(OFFERS[ref]), AFTER_FIT.get(ref, {})
    return ModelDescription(adapter="asks", ref=ref, offers=offers, after_fit=after)


def open_model(description: ModelDescription, options: AskingOptions) -> Asks:
    """Return the model."""
    return Asks(options)


class Asks:
    """A model that ranks by length, and writes what an option says."""

    def __init__(self, options: AskingOptions) -> None:
        self._options = options

    def identity(self) -> Mapping[str, str]:
        """Return its name and what it says."""
        return {"adapter": "asks", "says": self._options.says}

    def close(self) -> None:
        """Do nothing."""

    def token_counts(self, prompts: Sequence[Prompt]) -> list[int]:
        """Return the words of every prompt."""
        return [_words(prompt) for prompt in prompts]

    def context_length(self) -> int | None:
        """Return the option `context`."""
        return self._options.context or None

    def loglikelihood(self, requests: Sequence[LikelihoodRequest]) -> list[LikelihoodAnswer]:
        """Return -1 for every word of a continuation, so that the one with the fewest words is the likeliest."""
        CALLS.extend(("rank", request) for request in requests)
        return [
            LikelihoodAnswer(
                token_logprobs=(-1.0,) * len(request.continuation.split()),
                is_greedy=False,
                byte_length=len(request.continuation.encode()),
                truncated=self._options.cuts,
            )
            for request in requests
        ]

    def generate(self, prompts: Sequence[Prompt], options: Sequence[GenerateOptions]) -> list[Generated]:
        """Return the option `says`."""
        CALLS.extend(("write", asked) for asked in zip(prompts, options, strict=True))
        answers = self._options.says.split("|")
        texts = [answers[option.seed % len(answers)] for option in options]
        return [
            Generated(text=text, tokens=len(text.split()) + 1, finished=True, truncated=self._options.cuts)
            for text in texts
        ]

    def embed(self, texts: Sequence[str], *, side: Any, options: Any = None) -> FloatArray:
        """Return vectors of length one."""
        return np.ones((len(texts), 1), dtype=np.float32)

    def fit(
        self, train: Sequence[Any], validation: Sequence[Any], spec: HeadSpec, options: FitOptions
    ) -> Asks:
        """Keep the examples, and write a file."""
        CALLS.append(("fit", (list(train), list(validation), spec)))
        (options.directory / "weights.txt").write_text(str(len(train)), encoding="utf-8")
        return self

    def load_fit(self, directory: Path, spec: HeadSpec) -> Asks:
        """Return itself."""
        assert (directory / "weights.txt").is_file()
        return self


def _words(prompt: Prompt) -> int:
    texts = [prompt] if isinstance(prompt, str) else [turn.text for turn in prompt]
    return sum(len(text.split()) for text in texts)


@hookimpl
def harness_register_adapters() -> list[AdapterEntry]:
    """Return the adapter ``asks``."""
    return [
        AdapterEntry(
            name="asks",
            target="asking_adapter:open_model",
            describe="asking_adapter:describe",
            options="asking_adapter:AskingOptions",
            summary="It keeps what it is asked.",
        )
    ]
