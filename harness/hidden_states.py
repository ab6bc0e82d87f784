"""What a model shows of its inner states, and what of a text they do not show; `harness.capabilities` exports it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from harness.capabilities import Adapter

__all__ = ["CoversWords", "ExposesHiddenStates", "FloatArray", "HasUntrained", "WordCoverage"]

FloatArray = npt.NDArray[np.float32]


@runtime_checkable
class ExposesHiddenStates(Protocol):
    """Streams the hidden states of tokenised sentences."""

    def layer_count(self) -> int:
        """Return how many layers there are, the embedding layer included."""

    def hidden_states(
        self,
        sentences: Sequence[Sequence[str | None]],
        layers: Sequence[int],
        *,
        sentence_vector: bool = False,
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yield (index of the sentence, vectors of shape (layers, words, dimension)), in any order.

        A word's vector is that of its first piece; a word without a piece gets zeros. None is a masked word, whose
        piece is the mask token: raises `CapabilityError` where the tokenizer has none. With `sentence_vector` one
        vector more stands before those of the words: that of the first special token, or of the last piece in models
        that read from left to right.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class WordCoverage:
    """What of a sentence its hidden states do not show."""

    empty: tuple[int, ...] = ()
    """Numbers of the words that have no piece."""
    cut: tuple[int, ...] = ()
    """Numbers of the words that alone are longer than the model reads, and lose their last pieces."""
    windows: int = 1
    """In how many parts the model reads the sentence."""


@runtime_checkable
class CoversWords(Protocol):
    """Says what of sentences their hidden states do not show; an adapter that exposes these may have it."""

    def word_coverage(self, sentences: Sequence[Sequence[str | None]]) -> list[WordCoverage]:
        """Return one record a sentence; runs the tokenizer only."""


@runtime_checkable
class HasUntrained(Protocol):
    """Can be had with random weights; an adapter that exposes hidden states may have it."""

    def untrained(self, seed: int) -> Adapter:
        """Return a model of the same architecture and tokenizer, its weights drawn by `seed`.

        Its `identity` tells it from the trained one and from those of other seeds. Raises `CapabilityError` where
        the model is divided over several devices.
        """
