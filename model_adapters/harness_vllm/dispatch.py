"""Many requests at the same time, with a bound, in order, and called off together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from harness_vllm.client import Client

__all__ = ["Dispatch"]

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
        """Return one answer an item, in order; the first exception calls the other requests off."""
        if len(items) == 1:
            return [function(items[0])]
        futures = [self._threads.submit(function, item) for item in items]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
            _raise_first(futures)
            return [future.result() for future in futures]
        except BaseException as error:
            for future in futures:
                future.cancel()
            self._client.abort()
            if self._interrupted is not None and not isinstance(error, Exception):
                self._interrupted()
            wait(futures)
            self._client.resume()
            raise

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=True, cancel_futures=True)


def _raise_first(futures: Sequence[Future[Answer]]) -> None:
    for future in futures:
        if future.done() and (error := future.exception()) is not None:
            raise error
