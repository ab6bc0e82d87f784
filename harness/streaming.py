"""Answers as they come: what a journal can keep of work that never ends, and what processes can share.

The core plans which requests are asked together (a block), and in which process; an adapter that streams says after
every batch, or every request, what it has got.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

__all__ = ["Ability", "Answered", "Call", "HasNotices", "Streams"]

Ability = Literal[
    "classify", "choose", "tag", "extract_spans", "embed", "loglikelihood", "generate", "fill_masks"
]
"""The methods of capabilities whose answers are kept and shared: one answer a request, whatever stands beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is asked, without the requests."""

    ability: Ability
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """What all requests have in common: ``labels`` of `classify`; ``side`` and ``options`` of `embed`."""
    stopping: Callable[[], bool] = lambda: False
    """Whether the user wants the run to stop: no further batch shall begin, those under way are answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Some requests with their answers."""

    indices: Sequence[int]
    """Numbers of the requests, counted through all blocks from 0."""
    answers: Sequence[Any]
    """As the method of the capability returns them, one a request: a row of its array, or an item of its list."""


@runtime_checkable
class Streams(Protocol):
    """Gives answers as they come, rather than all at the end of a call."""

    def block_characters(self, ability: Ability) -> int | None:
        """Return how many characters of text make a block, a few batches' worth; None takes all in one block.

        The number depends on options only, never on how many processes there are or what memory is left: blocks, and
        so the batches within them, are the same for any number of processes.
        """

    def stream(self, call: Call, blocks: Sequence[Sequence[Any]]) -> Iterator[Answered]:
        """Yield the answers of all requests of all blocks, every one once, in any order.

        The requests of `generate` are pairs of a prompt and its options. Batches never cross the border of a block.
        The generator may be closed before its end.
        """


@runtime_checkable
class HasNotices(Protocol):
    """Has to say how its answers were made."""

    def notices(self) -> Sequence[str]:
        """Return sentences for the run's notes, in order: that batches were made smaller for want of memory."""
