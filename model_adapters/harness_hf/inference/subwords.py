"""Sub-words of texts by themselves, counted by the tokenizer of an opened model."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol

from harness import SubwordCount

__all__ = ["SubwordCounting", "TokenizingSession", "subword_ids"]


class TokenizingSession(Protocol):
    """What owns a tokenizer that several threads use."""

    tokenizer: Any
    tokenizing: threading.RLock


class SubwordCounting:
    """`CountsSubwords` of an adapter whose session has a tokenizer."""

    _session: Any

    def subword_counts(self, texts: Sequence[str]) -> list[SubwordCount]:
        """Return one count per text, without special tokens, prefixes and padding, before anything is cut."""
        session: TokenizingSession = self._session
        unknown = session.tokenizer.unk_token_id
        return [
            SubwordCount(tokens=len(ids), unknown=None if unknown is None else ids.count(unknown))
            for ids in subword_ids(session, texts)
        ]


def subword_ids(session: TokenizingSession, texts: Sequence[str]) -> list[list[int]]:
    """Return the pieces of texts without special ones, uncut; no piece for an empty text."""
    if not texts:
        return []
    with session.tokenizing:
        encoded = session.tokenizer(
            list(texts),
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
    return list(encoded["input_ids"])
