"""Requests and answers of models that write text or give its probability; `harness.capabilities` exports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "GenerateOptions",
    "Generated",
    "LikelihoodAnswer",
    "LikelihoodRequest",
    "MaskRequest",
    "Prompt",
    "Turn",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelihoodRequest:
    """A continuation to score after a context."""

    context: str
    continuation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskRequest:
    """A form to score in its place: the text is ``before + form + after``, its spaces included."""

    before: str
    form: str
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelihoodAnswer:
    """Log-probabilities (natural logarithm) of one continuation, or of one form in its place."""

    token_logprobs: tuple[float, ...]
    """One number a token that belongs to the continuation, a token that straddles the boundary included."""
    is_greedy: bool
    """Whether every token is the likeliest one."""
    byte_length: int
    """UTF-8 bytes of the continuation."""
    truncated: bool = False
    """Whether tokens of the context were cut off from the left."""
    straddles: bool = False
    """Whether a token holds the end of the context and the beginning of the continuation."""

    @property
    def total(self) -> float:
        """The sum of the token log-probabilities."""
        return float(sum(self.token_logprobs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    text: str


Prompt = str | tuple[Turn, ...]
"""A text to go on from, or a conversation that the model's chat template turns into one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """What a model wrote for one prompt."""

    text: str
    """Without the prompt, the stop string and special tokens."""
    tokens: int
    """How many tokens were generated, the end token included."""
    finished: bool
    """Whether it ended by itself or at a stop string, rather than at the token limit."""
    truncated: bool = False
    """Whether tokens of the prompt were cut off from the left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateOptions:
    """How text is generated for one request."""

    max_tokens: int = 64
    stop: tuple[str, ...] = ()
    temperature: float = 0.0
    """0 is greedy; sampling depends on `seed` alone, not on the batch."""
    top_p: float = 1.0
    seed: int = 0
    choices: tuple[str, ...] | None = None
    regex: str | None = None
    json_schema: Mapping[str, Any] | None = None
