"""An open connection to a server: its model, its context length, and requests that run at the same time."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeVar

from harness import AdapterError, CapabilityError
from harness.models.requests import Ability, Answered, Call
from harness_vllm.client import Client
from harness_vllm.dispatch import Dispatch
from harness_vllm.server import OwnServer

__all__ = ["ServerSession", "ability_error", "in_order", "one_by_one"]

STRUCTURED_SINCE = (0, 12)
"""vLLM 0.12 removed the ``guided_*`` fields in favour of ``structured_outputs``."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class ServerSession:
    """Owns the connections to a server, and the server itself where the adapter started it."""

    def __init__(
        self,
        client: Client,
        *,
        model: str,
        context_length: int | None,
        concurrency: int,
        version: str,
        identity: Mapping[str, str],
        server: OwnServer | None = None,
    ) -> None:
        self.client = client
        self.model = model
        self.context_length = context_length
        self.concurrency = concurrency
        self.guided = _is_before(version, STRUCTURED_SINCE)
        """Whether constraints have their older names."""
        self._identity = dict(identity)
        self._server = server
        self._dispatch = Dispatch(client, concurrency, None if server is None else server.stop)
        self._closed = False

    def identity(self) -> Mapping[str, str]:
        """Return the identity of the answers, without the address and the key."""
        return dict(self._identity)

    def url(self, path: str) -> str:
        """Return the whole address of a path, for messages."""
        return self.client.address.url(self.client.address.base + path)

    def map(self, function: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
        """Return one answer per item, in order, `concurrency` at a time; raises `AdapterError` once closed."""
        self._check_open()
        return self._dispatch.map(function, items)

    def stream(
        self,
        function: Callable[[Item], Answer],
        items: Sequence[Item],
        stopping: Callable[[], bool] = lambda: False,
    ) -> Generator[tuple[int, Answer], None, None]:
        """Yield (index, answer) as the answers come; see `Dispatch.stream`. Raises `AdapterError` once closed."""
        self._check_open()
        return self._dispatch.stream(function, items, stopping)

    def _check_open(self) -> None:
        if self._closed:
            raise AdapterError(f"The model {self.model!r} has been closed.")

    def close(self) -> None:
        """End the threads, the connections, and the server where the adapter started it; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._server is not None:
            self._server.stop()
        self._dispatch.close()
        self.client.close()
        if self.client.repeated:
            requests = "request was" if self.client.repeated == 1 else "requests were"
            print(f"{self.client.repeated} {requests} repeated.", file=sys.stderr)  # noqa: T201  # one line per run


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


def ability_error(model: str, ability: Ability) -> CapabilityError:
    """Return the error for an ability that a model behind a server does not have."""
    return CapabilityError(f"The model {model!r} behind its server has no ability {ability!r}.")


def _is_before(version: str, limit: tuple[int, int]) -> bool:
    # A build from a checkout without tags calls itself 0.1.dev1, however new it is.
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and "dev" not in version and (int(found[1]), int(found[2])) < limit
