"""Several servers of one model, used like one: a request goes to the server with the fewest under way."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness import AdapterError, UsageError
from harness_vllm.client import Address, Client, NoAnswer, StatusError, Unreachable

SECONDS_TO_PROVE_LIFE = 5.0
"""How long a server that left a request unanswered has to list its models."""


def parse_addresses(ref: str) -> list[Address]:
    """Return the addresses of a reference, comma-separated, each once; raises `UsageError` for one that is no URL."""
    return list(dict.fromkeys(Address.parse(url.strip()) for url in ref.split(",") if url.strip()))


def check_same_model(addresses: Sequence[Address], identities: Sequence[Mapping[str, str]]) -> None:
    """Raise `UsageError` where what identifies the model of one server is not what identifies the first one's."""
    first, *further = identities
    for address, candidate in zip(addresses[1:], further, strict=True):
        for name in sorted({*first, *candidate}):
            if first.get(name) != candidate.get(name):
                raise UsageError(
                    f"The servers {addresses[0]} and {address} do not serve the same model: {name} is "
                    f"{first.get(name, 'unknown')!r} and {candidate.get(name, 'unknown')!r}.",
                    hint="Give each of them a run of its own.",
                )


@dataclass(slots=True)
class _Endpoint:
    client: Client
    under_way: int = 0
    sent: int = 0
    dropped: bool = False


class Endpoints:
    """Sends each request through the client that has the fewest under way.

    A server is dropped when it has left a request unanswered after all its repetitions and either accepts no
    connections or does not list its models. Its unanswered requests go to the others; the last server is never dropped,
    so its error is that of one server.

    Args:
        clients: One for each server.
        concurrency: How many requests may be under way at one server.
    """

    def __init__(self, clients: Sequence[Client], *, concurrency: int) -> None:
        self.clients = tuple(clients)
        self.concurrency = concurrency * len(clients)
        """How many requests may be under way at all servers."""
        self.notices: list[str] = []
        """A sentence for each server that was dropped."""
        self._endpoints = [_Endpoint(client) for client in clients]
        self._limit = concurrency
        self._changed = threading.Condition()
        self._ending = threading.Event()
        """Set while request is passed on to another server: after `drain` and `abort`, until `resume`."""
        self._last = threading.local()

    @property
    def address(self) -> Address:
        """The server of this thread's last request, for messages; the first one before any request."""
        address: Address = getattr(self._last, "address", self.clients[0].address)
        return address

    @property
    def repeated(self) -> int:
        """How many requests were sent again to the same server."""
        return sum(client.repeated for client in self.clients)

    def post(self, path: str, payload: Mapping[str, Any]) -> Any:
        """Return the answer of some server to `Client.post`; raises as it does."""
        return self._ask(lambda client: client.post(path, payload))

    def post_root(self, path: str, payload: Mapping[str, Any]) -> Any:
        """Return the answer of some server to `Client.post_root`; raises as it does."""
        return self._ask(lambda client: client.post_root(path, payload))

    def drain(self) -> None:
        """Repeat nothing, and pass nothing on, until `resume`."""
        self._end()
        for client in self.clients:
            client.drain()

    def abort(self) -> None:
        """Make all requests under way end at once, with an `AdapterError`."""
        self._end()
        for client in self.clients:
            client.abort()

    def resume(self) -> None:
        """Allow requests again after `abort` or `drain`; dropped servers stay dropped."""
        self._ending.clear()
        for endpoint in self._endpoints:
            if not endpoint.dropped:
                endpoint.client.resume()

    def close(self) -> None:
        """Close all connections; a second call does nothing."""
        for client in self.clients:
            client.close()

    # One request ----------------------------------------------------------------------------------------

    def _ask(self, ask: Callable[[Client], Any]) -> Any:
        while True:
            endpoint = self._take()
            try:
                return ask(endpoint.client)
            except StatusError:
                raise
            except AdapterError as error:
                if not self._may_pass_on(endpoint, error):
                    raise
            finally:
                with self._changed:
                    endpoint.under_way -= 1
                    self._changed.notify()

    def _take(self) -> _Endpoint:
        """Return the server for a request, waiting until one has room; raises `AdapterError` where the run ends."""
        with self._changed:
            self._changed.wait_for(lambda: self._ending.is_set() or self._with_room())
            if not (free := self._with_room()):
                raise AdapterError("The request was cancelled before a server had room for it.")
            endpoint = min(free, key=lambda each: (each.under_way, each.sent))
            endpoint.under_way += 1
            endpoint.sent += 1
        self._last.address = endpoint.client.address
        return endpoint

    def _with_room(self) -> list[_Endpoint]:
        return [each for each in self._endpoints if not each.dropped and each.under_way < self._limit]

    def _may_pass_on(self, endpoint: _Endpoint, error: AdapterError) -> bool:
        """Return whether a request without an answer goes to another server, because this one is dead."""
        if self._ending.is_set():
            return False
        if endpoint.dropped:  # another thread found it dead, so this request was not repeated
            return True
        if not isinstance(error, NoAnswer) or len(self.clients) == 1 or _lives(endpoint.client, error):
            return False
        with self._changed:
            if self._ending.is_set():  # which may be why it seemed dead
                return False
            if not endpoint.dropped:
                if sum(not each.dropped for each in self._endpoints) == 1:
                    return False
                endpoint.dropped = True
                self._report(error)
        endpoint.client.drain()  # a server that shuts down may still answer what is under way
        return True

    def _report(self, error: AdapterError) -> None:
        self.notices.append(f"{error.message} It was dropped: the other servers got its requests.")
        print(f"Warning: {self.notices[-1]}", file=sys.stderr, flush=True)  # noqa: T201  # once per server

    def _end(self) -> None:
        with self._changed:
            self._ending.set()
            self._changed.notify_all()


def _lives(client: Client, error: NoAnswer) -> bool:
    if isinstance(error, Unreachable):  # it may still list its models on a connection of before
        return False
    try:
        client.get("/models", timeout=SECONDS_TO_PROVE_LIFE, retries=0)
    except StatusError:
        return True
    except AdapterError:
        return False
    return True
