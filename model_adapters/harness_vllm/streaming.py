"""Answers of a server as the core writes them down."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any

from harness.errors import CapabilityError
from harness.models.requests import Ability, Answered, Call
from harness_vllm.session import ServerSession

__all__ = ["in_order", "one_by_one", "refuse"]


def one_by_one(
    session: ServerSession, function: Callable[[Any], Any], call: Call, blocks: Sequence[Sequence[Any]]
) -> Generator[Answered, None, None]:
    """Yield the answer of `function` to every request of all blocks, each alone."""
    requests = [request for block in blocks for request in block]
    with closing(session.stream(function, requests, call.stopping)) as stream:
        for index, answer in stream:
            yield Answered(indices=(index,), answers=(answer,))


def in_order(stream: Generator[Answered, None, None], count: int) -> list[Any]:
    """Return the answers of a whole stream in the order of the `count` requests."""
    found: dict[int, Any] = {}
    with closing(stream):
        for answered in stream:
            found.update(zip(answered.indices, answered.answers, strict=True))
    return [found[index] for index in range(count)]


def refuse(model: str, ability: Ability) -> CapabilityError:
    """Return the error for what a model behind this server is never asked."""
    return CapabilityError(f"The model {model!r} behind its server gives no answers of the kind {ability!r}.")
