"""An open connection to a server, or to several of one model: many requests at the same time, up to a limit.

A request goes to the server with the fewest under way.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from packaging.version import InvalidVersion, Version

from harness import AdapterError, CapabilityError, UsageError
from harness.models import Ability, Answered, Call
from harness_vllm.client import Address, Client, NoAnswer, StatusError, Unreachable
from harness_vllm.server import OwnServer

SECONDS_TO_PROVE_LIFE = 5.0
"""How long a server that left a request unanswered has to list its models."""
STRUCTURED_SINCE = Version("0.12")
"""This version of vLLM removed the ``guided_*`` fields in favour of ``structured_outputs``."""
AHEAD = 2
"""Requests that are submitted for each one under way, so that no thread waits for the caller."""
SECONDS_BETWEEN_CHECKS = 0.1
"""How often `stopping` is checked while no answer comes."""
SECONDS_TO_FINISH = 20.0
"""How long requests under way may still take once the user stops; schedulers kill 30 s after SIGTERM."""


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


Item = TypeVar("Item")
Answer = TypeVar("Answer")


class ServerSession:
    """Owns the connections to a server, the threads that use them, and the server where the adapter started it."""

    def __init__(
        self,
        client: Endpoints,
        *,
        model: str,
        context_length: int | None,
        version: str,
        identity: Mapping[str, str],
        server: OwnServer | None = None,
    ) -> None:
        self.client = client
        self.model = model
        self.context_length = context_length
        self.concurrency = client.concurrency
        self.guided = _is_before(version, STRUCTURED_SINCE)
        """Whether constraints have their older names."""
        self.identity = dict(identity)
        """The identity of the answers, without the address and the key."""
        self._server = server
        self._threads = ThreadPoolExecutor(client.concurrency, thread_name_prefix="harness-vllm")
        self._closed = False

    def url(self, path: str) -> str:
        """Return the whole address of a path at the server of this thread's last request, for messages."""
        return self.client.address.url(self.client.address.base + path)

    def map(self, function: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
        """Return one answer per item, in order; raises as `stream` does."""
        with closing(self.stream(function, items)) as stream:
            answers = dict(stream)
        return [answers[index] for index in range(len(items))]

    def stream(
        self,
        function: Callable[[Item], Answer],
        items: Sequence[Item],
        stopping: Callable[[], bool] = lambda: False,
    ) -> Generator[tuple[int, Answer], None, None]:
        """Return (index, answer) of every item as the answers come, `concurrency` requests at a time.

        Once `stopping` returns True no request starts or is repeated; those under way are cancelled after
        `SECONDS_TO_FINISH`, and an error among them is dropped. After an error no request starts either; it is
        raised after the answers of the others, which are cancelled where the server cannot be reached. Ctrl-C and
        the end of the generator cancel them, too. Raises `AdapterError` at once where the session is closed.
        """
        if self._closed:
            raise AdapterError(f"The model {self.model!r} has been closed.")
        return self._stream(_Work(self._threads, function, items), stopping)

    def close(self) -> None:
        """End the threads, the connections, and the server where the adapter started it; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._server is not None:
            self._server.stop()
        self.client.abort()
        self._threads.shutdown(wait=True, cancel_futures=True)
        self.client.close()
        if self.client.repeated:
            requests = "request was" if self.client.repeated == 1 else "requests were"
            print(f"{self.client.repeated} {requests} repeated.", file=sys.stderr)  # noqa: T201  # one line per run

    def _stream(
        self, work: _Work[Item, Answer], stopping: Callable[[], bool]
    ) -> Generator[tuple[int, Answer], None, None]:
        failure: Exception | None = None
        last_moment: float | None = None
        try:
            while True:
                if last_moment is None and stopping():
                    last_moment = time.monotonic() + SECONDS_TO_FINISH
                    self.client.drain()
                if last_moment is not None and time.monotonic() > last_moment:
                    self.client.abort()
                if failure is not None or last_moment is not None:
                    work.cancel()
                else:
                    work.fill(AHEAD * self.concurrency)
                if not work.under_way:
                    break
                if (done := work.done()) is None:
                    continue
                index, future = done
                if (error := _exception_of(future)) is None:
                    yield index, future.result()
                elif failure is None and last_moment is None:
                    failure = error
                    (self.client.abort if isinstance(error, Unreachable) else self.client.drain)()
        except BaseException as error:
            self._cancel_all(work, error)
            raise
        if failure is not None or last_moment is not None:
            self.client.resume()
        if failure is not None:
            raise failure

    def _cancel_all(self, work: _Work[Item, Answer], error: BaseException) -> None:
        work.cancel()
        self.client.abort()
        # After a generator is closed its caller may still need the server.
        if self._server is not None and not isinstance(error, Exception | GeneratorExit):
            self._server.stop()
        try:
            wait(work.under_way)
        except BaseException:
            if self._server is not None:
                self._server.stop()
            raise
        self.client.resume()


class _Work(Generic[Item, Answer]):
    """Items on their way through threads, a bounded number at a time."""

    def __init__(
        self, threads: ThreadPoolExecutor, function: Callable[[Item], Answer], items: Sequence[Item]
    ) -> None:
        self.under_way: dict[Future[Answer], int] = {}
        self._threads = threads
        self._function = function
        self._items = items
        self._next = 0
        self._done: queue.SimpleQueue[Future[Answer]] = queue.SimpleQueue()

    def fill(self, count: int) -> None:
        """Hand items over until `count` are under way."""
        while len(self.under_way) < count and self._next < len(self._items):
            future = self._threads.submit(self._function, self._items[self._next])
            self.under_way[future] = self._next
            self._next += 1
            future.add_done_callback(self._done.put)

    def cancel(self) -> None:
        """Cancel the items that no thread has started."""
        for future in [future for future in self.under_way if future.cancel()]:
            del self.under_way[future]

    def done(self) -> tuple[int, Future[Answer]] | None:
        """Return a finished item with its index; None where none finishes within a moment."""
        try:
            future = self._done.get(timeout=SECONDS_BETWEEN_CHECKS)
        except queue.Empty:
            return None
        # Cancelled items arrive here, too.
        index = self.under_way.pop(future, None)
        return None if index is None else (index, future)


def _exception_of(future: Future[Any]) -> Exception | None:
    """Return the error of a thread; one that would end a process is raised at once."""
    error = future.exception()
    if error is None or isinstance(error, Exception):
        return error
    raise error


class ServerModel:
    """Base of the models behind a server."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session

    def identity(self) -> Mapping[str, str]:
        """Return model, server version and options as text, never the key."""
        return dict(self._session.identity)

    def notices(self) -> Sequence[str]:
        """Return a sentence for each server that was dropped."""
        return self._session.client.notices

    def close(self) -> None:
        """End the connections, and the server where the adapter started it; a second call does nothing."""
        self._session.close()

    def block_characters(self, ability: Ability) -> int | None:
        """Return None: the server makes its own batches."""
        return None


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
    answers: dict[int, Any] = {}
    with closing(stream):
        for answered in stream:
            answers.update(zip(answered.indices, answered.answers, strict=True))
    return [answers[index] for index in range(count)]


def ability_error(model: str, ability: Ability) -> CapabilityError:
    """Return the error for an ability that a model behind a server does not have."""
    return CapabilityError(f"The model {model!r} behind its server has no ability {ability!r}.")


def _is_before(version: str, limit: Version) -> bool:
    try:
        parsed = Version(version)
    except InvalidVersion:
        return False
    # A build from a checkout without tags calls itself 0.1.dev1, however new it is.
    return not parsed.is_devrelease and parsed.release < limit.release
