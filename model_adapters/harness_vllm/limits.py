"""Answers that end: read from a socket within a time and a size."""

from __future__ import annotations

import http.client
import io
import socket
import time
from functools import partial
from typing import Any

__all__ = ["AnswerTooLargeError", "limit_answer", "read_body"]

PIECE = 1 << 20


class AnswerTooLargeError(Exception):
    """An answer is larger than the limit."""


class _LimitedBytes(io.RawIOBase):
    """What a socket receives until a moment, up to a number of bytes; status line and headers included.

    A timeout of a socket counts from the last byte, so that a server which sends a byte now and then is never late.
    """

    def __init__(self, connected: socket.socket, deadline: float, most: int) -> None:
        # The file, not the socket, keeps the connection open where the server closes it after the answer.
        self._file = connected.makefile("rb", buffering=0)
        self._socket = connected
        self._deadline = deadline
        self._left = most

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Receive bytes; raises `TimeoutError` after the deadline and `AnswerTooLargeError` after the last byte."""
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        self._socket.settimeout(seconds)
        count = self._file.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise AnswerTooLargeError
        return count

    def close(self) -> None:
        """Close the file of the socket."""
        self._file.close()
        super().close()


class _LimitedResponse(http.client.HTTPResponse):
    def __init__(
        self, connected: socket.socket, *given: Any, deadline: float, most: int, **named: Any
    ) -> None:
        super().__init__(connected, *given, **named)
        self.fp.close()
        self.fp = io.BufferedReader(_LimitedBytes(connected, deadline, most))


def limit_answer(connection: http.client.HTTPConnection, deadline: float, most: int) -> None:
    """Let the next answer of a connection end by `deadline` (of `time.monotonic`) and within `most` bytes."""
    connection.response_class = partial(_LimitedResponse, deadline=deadline, most=most)  # type: ignore[assignment]


def read_body(response: http.client.HTTPResponse, most: int) -> bytes:
    """Return the body of an answer, read in pieces: memory is not reserved for what a server only announces.

    Raises `AnswerTooLargeError` for one that announces more than `most` bytes, and what reading from a socket raises.
    """
    if response.length is not None and response.length > most:
        raise AnswerTooLargeError
    pieces = []
    while piece := response.read(PIECE):
        pieces.append(piece)
    content = b"".join(pieces)
    if response.length:
        raise http.client.IncompleteRead(content, response.length)
    return content
