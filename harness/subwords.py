"""How many sub-words a tokenizer makes of a text, and how many of them a model reads; see `harness.capabilities`.

An adapter may have these abilities or not; no method asks for them, and an adapter need not declare them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from harness.capabilities import EmbedOptions

__all__ = ["CountsSubwords", "CutsTexts", "SubwordCount"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubwordCount:
    """The sub-words of one text."""

    tokens: int
    """Without special tokens, templates, prefixes and padding, before anything is cut."""
    unknown: int | None = None
    """How many of them are the unknown token; None where the adapter cannot tell."""


@runtime_checkable
class CountsSubwords(Protocol):
    """Counts the sub-words of texts by themselves, as fertility does (Ács 2019; Rust et al. 2021, section 3.3)."""

    def subword_counts(self, texts: Sequence[str]) -> list[SubwordCount]:
        """Return one count a text; runs the tokenizer only. An empty text has no token."""


@runtime_checkable
class CutsTexts(Protocol):
    """Says how long texts may be that `classify`, `choose` or `embed` read whole: their answers do not tell.

    Where such an adapter tags, it splits long sentences between words and cuts none.
    """

    def text_room(self, texts: int, options: EmbedOptions | None = None) -> int | None:
        """Return how many sub-words, as `CountsSubwords` counts them, a sequence of so many texts may have.

        Args:
            texts: 1, or 2 for a pair.
            options: How the one text is embedded as a query; None where a head reads the sequence.

        Returns:
            The most sub-words of all texts together of which none is cut; None where there is no limit.
        """
