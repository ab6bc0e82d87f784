"""How attention is asked for, and what is answered: one score a piece, with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["AttentionOptions", "SegmentAttention", "TextAttention"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionOptions:
    """How the attention of all layers and heads becomes one score a piece."""

    over: Literal["max", "mean"] = "max"
    """How layers and heads are joined: the largest weight of any of them, or their mean."""
    row: Literal["first", "mean"] = "first"
    """Whose attention is read: that of the first position (the classification token), or of all positions on average,
    padding left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentAttention:
    """The pieces of one text in their order, without special pieces: where each stands, and its score."""

    starts: tuple[int, ...]
    """Offset of every piece's first character in the text, in Unicode code points."""
    ends: tuple[int, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextAttention:
    """The attention that the pieces of a text, or of a pair of texts, get."""

    segments: tuple[SegmentAttention, ...]
    """One for the text; a second one for the other text of a pair."""
    truncated: bool = False
    """Whether the model could not see all of the input."""
