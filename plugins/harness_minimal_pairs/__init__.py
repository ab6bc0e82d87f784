"""Minimal pairs of sentences and cloze questions with candidates: the readers of their published files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.data import Reader

__all__ = ["harness_register_readers"]


@hookimpl
def harness_register_readers() -> Iterable[Reader]:
    """Return the readers of sentence pairs, of BMLAMA and of XWinograd."""
    from harness_minimal_pairs.readers import READERS, XWINOGRAD

    return (*READERS, XWINOGRAD)
