"""Many requests at the same time, up to a limit: yielded as they are answered, drained or cancelled after an error."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from typing import Generic, TypeVar

from harness_vllm.client import Client, Unreachable

__all__ = ["Dispatch"]

AHEAD = 2
"""Requests that are submitted for each one under way, so that no thread waits for the caller."""
SECONDS_BETWEEN_CHECKS = 0.1
"""How often `stopping` is checked while no answer comes."""
SECONDS_TO_FINISH = 20.0
"""How long requests under way may still take once the user stops; schedulers kill 30 s after SIGTERM."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Dispatch:
    """Threads that send requests through one client.

    Args:
        client: What the functions send their requests with.
        concurrency: At most so many requests are under way.
        interrupted: Called when Ctrl-C, or an exit, ends a call.
    """

    def __init__(
        self, client: Client, concurrency: int, interrupted: Callable[[], None] | None = None
    ) -> None:
        self.concurrency = concurrency
        self._client = client
        self._interrupted = interrupted
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="harness-vllm")

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
        """Yield (index, answer) of every item as the answers come.

        Once `stopping` returns True no request starts or is repeated; those under way are cancelled after
        `SECONDS_TO_FINISH`, and an error among them is dropped. After an error no request starts either; it is
        raised after the answers of the others, which are cancelled where the server cannot be reached. Ctrl-C and
        the end of the generator cancel them, too.
        """
        work = _Work(self._threads, function, items)
        failure: Exception | None = None
        last_moment: float | None = None
        try:
            while True:
                if last_moment is None and stopping():
                    last_moment = time.monotonic() + SECONDS_TO_FINISH
                    self._client.drain()
                if last_moment is not None and time.monotonic() > last_moment:
                    self._client.abort()
                if failure is not None or last_moment is not None:
                    work.cancel()
                else:
                    work.fill(AHEAD * self.concurrency)
                if not work.under_way:
                    break
                if (done := work.done()) is None:
                    continue
                index, future = done
                if (error := future.exception()) is None:
                    yield index, future.result()
                elif failure is None and last_moment is None:
                    failure = _as_exception(error)
                    self._drain(failure)
        except BaseException as error:
            self._cancel_all(work, error)
            raise
        if failure is not None or last_moment is not None:
            self._client.resume()
        if failure is not None:
            raise failure

    def close(self) -> None:
        """End the threads, and what they still wait for."""
        self._client.abort()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _drain(self, failure: Exception) -> None:
        if isinstance(failure, Unreachable):
            self._client.abort()
        else:
            self._client.drain()

    def _cancel_all(self, work: _Work[Item, Answer], error: BaseException) -> None:
        work.cancel()
        self._client.abort()
        interrupted = self._interrupted or (lambda: None)
        # After a generator is closed its caller may still need the server.
        if not isinstance(error, Exception | GeneratorExit):
            interrupted()
        try:
            wait(work.under_way)
        except BaseException:
            interrupted()
            raise
        self._client.resume()


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


def _as_exception(error: BaseException) -> Exception:
    """Return the error of a thread; one that would end a process is raised at once."""
    if isinstance(error, Exception):
        return error
    raise error
