"""The examples of one split that is audited, and how a sentence names its items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.data.sources import FoundData

__all__ = ["AuditedSplit", "named_ids"]

NAMED = 3
"""Items that a sentence names."""


def named_ids(ids: Sequence[str]) -> str:
    """Return the first ids of items, as a sentence names them: their own, or their number in the file."""
    more = ", ..." if len(ids) > NAMED else ""
    return f"{'items' if len(ids) > 1 else 'item'} {', '.join(map(repr, ids[:NAMED]))}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedSplit:
    """The examples of one split in one language, under one value of every axis."""

    owner: str
    language: str
    split: str
    axes: tuple[str, ...]
    """The values of the task's axes."""
    found: FoundData
    examples: Sequence[Any]
    candidates: Sequence[str] = ()
    """The ids of the pool that the examples are joined with, for kinds that rank one."""

    @property
    def origin(self) -> str:
        """``local``, ``hub`` or ``sample``."""
        return self.found.files.origin

    @property
    def title(self) -> str:
        """Return ``test``, or ``test, one x two`` with axes."""
        return self.split + "".join(f", {value}" for value in self.axes)
