"""JSON over HTTP with keep-alive connections and bounded retries; one client serves many threads.

The standard library's `http.client` is enough here and costs least time a request.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from harness import AdapterError
from harness.storage.clean_text import clean_json, clean_text
from harness_vllm.address import Address
from harness_vllm.limits import AnswerTooLargeError, limit_answer, read_body

__all__ = ["Client", "StatusError", "Unreachable"]

FIRST_WAIT = 0.5
LONGEST_WAIT = 60.0
SHORTEST_WAIT = 0.001
"""Seconds; a timeout of 0 would mean that a socket does not wait at all."""
MEBIBYTE = 1 << 20
TEMPORARY = frozenset({408, 429, 500, 502, 503, 504, 529})
_BEGINS_JSON = frozenset({b"", b"{", b"["})
SHOWN = 300
"""Characters of a server's answer that an error shows."""

Headers = Mapping[str, str]


class StatusError(AdapterError):
    """A server answered with an error status that no retry changes."""

    def __init__(self, url: str, status: int, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"The server at {url} answered {status}: {reason}.", hint=hint)
        self.status = status
        self.reason = reason


class Unreachable(AdapterError):
    """No connection can be made, for this request or any other."""


class _TemporaryFault(Exception):
    """A fault that a retry may solve."""

    def __init__(
        self,
        reason: str,
        *,
        lost: bool = False,
        unreachable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.lost = lost
        """Whether there was no answer at all: the server may be gone."""
        self.unreachable = unreachable
        """Whether not even a connection could be made."""
        self.retry_after = retry_after


class Client:
    """Sends requests to one server.

    Args:
        address: Where the server is.
        timeout: Seconds that a request may take, from the connection to the last byte of the answer.
        retries: How often a request is repeated.
        key: Sent as a bearer token, and never shown.
        max_answer_mib: Mebibytes that one answer may have.
        revive: Called where no connection can be made; True means that the server has been started again.
    """

    def __init__(
        self,
        address: Address,
        *,
        timeout: float,
        retries: int,
        key: str | None = None,
        max_answer_mib: int = 64,
        revive: Callable[[], bool] | None = None,
    ) -> None:
        self.address = address
        self.timeout = timeout
        self.retries = retries
        self.repeated = 0
        """How many requests were sent again."""
        self._key = key
        self._max_answer_mib = max_answer_mib
        self._revive = revive
        self._idle: list[http.client.HTTPConnection] = []
        self._busy: dict[http.client.HTTPConnection, socket.socket | None] = {}
        """Connections in use with their sockets, which a connection forgets while the last answer is still read."""
        self._lock = threading.Lock()
        self._aborted = threading.Event()
        self._draining = threading.Event()
        """Set while no request is repeated, after `abort` too: it wakes the threads that wait to do so."""

    def get(self, path: str, *, timeout: float | None = None, retries: int | None = None) -> Any:
        """Return the JSON of a path below the base; raises `AdapterError`, `StatusError` for most 4xx."""
        return self._request("GET", self.address.base + path, None, timeout, retries)

    def post(self, path: str, payload: Mapping[str, Any]) -> Any:
        """Return the JSON that a path below the base gives for `payload`; raises as `get` does."""
        return self._request("POST", self.address.base + path, payload, None, None)

    def get_root(self, path: str) -> Any:
        """Return the JSON of a path next to the base."""
        return self._request("GET", self.address.root + path, None, None, None)

    def post_root(self, path: str, payload: Mapping[str, Any]) -> Any:
        """Return the JSON that a path next to the base answers for `payload`."""
        return self._request("POST", self.address.root + path, payload, None, None)

    def drain(self) -> None:
        """Repeat nothing from now on: requests under way end with the answer, or the fault, of this attempt."""
        self._draining.set()

    def abort(self) -> None:
        """Make all requests under way end at once, with an `AdapterError`."""
        self._aborted.set()
        self._draining.set()
        with self._lock:
            for connected in self._busy.values():
                _shut(connected)

    def resume(self) -> None:
        """Allow requests, and repeat them, again after `abort` or `drain`."""
        self._aborted.clear()
        self._draining.clear()

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    # One request ----------------------------------------------------------------------------------------

    def _request(
        self,
        method: str,
        path: str,
        payload: Mapping[str, Any] | None,
        timeout: float | None,
        retries: int | None,
    ) -> Any:
        body = None if payload is None else json.dumps(payload, separators=(",", ":")).encode()
        limit = self.retries if retries is None else retries
        attempt = 0
        while True:
            try:
                return self._exchange(method, path, body, timeout or self.timeout)
            except _TemporaryFault as fault:
                if self._aborted.is_set():
                    raise AdapterError(f"The request to {self.address.url(path)} was cancelled.") from fault
                if not self._draining.is_set() and fault.lost and self._revive is not None and self._revive():
                    continue
                seconds = _seconds_to_wait(attempt, fault.retry_after)
                if attempt >= limit or self._draining.wait(seconds):
                    raise self._give_up(path, attempt + 1, fault) from fault
            attempt += 1
            with self._lock:
                self.repeated += 1

    def _give_up(self, path: str, attempts: int, fault: _TemporaryFault) -> AdapterError:
        times = "once" if attempts == 1 else f"{attempts} times"
        hint = (
            "See whether it is still running, start it again, and repeat the command: finished parts are kept."
            if fault.lost
            else "Repeat the command later: finished parts are kept. -o concurrency=N and -o timeout=SECONDS "
            "ease its load."
        )
        kind = Unreachable if fault.unreachable else AdapterError
        return kind(f"The server at {self.address.url(path)} was asked {times}: {fault}.", hint=hint)

    def _too_large(self, path: str) -> AdapterError:
        return AdapterError(
            f"The server at {self.address.url(path)} sent an answer of more than {self._max_answer_mib} MiB.",
            hint="Allow more with -o max_answer_mib=N; -o prompts_per_request=1 makes answers of vllm smaller.",
        )

    def _exchange(self, method: str, path: str, body: bytes | None, timeout: float) -> Any:
        status, headers, content = self._send(method, path, body, timeout)
        if 200 <= status < 300:
            try:
                return clean_json(content)
            except ValueError as error:
                reason = f"answered with something that is no JSON: {self._shown(content)!r}"
                if content.lstrip()[:1] in _BEGINS_JSON:  # cut off on its way
                    raise _TemporaryFault(f"it {reason}") from error
                raise AdapterError(f"The server at {self.address.url(path)} {reason}.") from error
        reason = self._shown(_message(content))
        if status in TEMPORARY:
            raise _TemporaryFault(
                f"it answered {status}: {reason}", retry_after=_number(headers.get("retry-after"))
            )
        raise StatusError(
            self.address.url(path), status, reason or "no reason given", hint=_status_hint(status)
        )

    def _send(self, method: str, path: str, body: bytes | None, timeout: float) -> tuple[int, Headers, bytes]:
        """Return status, headers and body of the answer; raises `_TemporaryFault` where none came."""
        while True:
            connection, used = self._take(timeout)
            try:
                answer = self._converse(connection, method, path, body, time.monotonic() + timeout)
            except TimeoutError as error:
                self._drop(connection)
                raise _TemporaryFault(f"it gave no answer within {timeout:g} s") from error
            except AnswerTooLargeError as error:
                self._drop(connection)
                raise self._too_large(path) from error
            except (
                OSError,
                http.client.HTTPException,
                ValueError,
            ) as error:  # ValueError: a chunk of size -1
                self._drop(connection)
                # Servers close idle connections after seconds: that is no fault.
                if used and isinstance(error, ConnectionError) and not self._draining.is_set():
                    continue
                unreachable = isinstance(error, ConnectionRefusedError | socket.gaierror)
                reason = _connection_fault(error, self._shown(str(error)))
                raise _TemporaryFault(reason, lost=True, unreachable=unreachable) from error
            except BaseException:
                self._drop(connection)
                raise
            self._put_back(connection)
            return answer

    def _converse(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes | None,
        deadline: float,
    ) -> tuple[int, Headers, bytes]:
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        most = self._max_answer_mib * MEBIBYTE
        limit_answer(connection, deadline, most)
        if connection.sock is None:
            connection.connect()
        with self._lock:
            self._busy[connection] = connection.sock
        if self._aborted.is_set():  # while there was no socket that `abort` could have shut
            raise ConnectionAbortedError
        connection.sock.settimeout(max(deadline - time.monotonic(), SHORTEST_WAIT))
        connection.request(method, path, body=body, headers=headers)
        # A connection forgets an answer that ends with it, so that closing the one leaves the other open.
        with closing(connection.getresponse()) as response:
            content = read_body(response, most)
        return response.status, {name.lower(): value for name, value in response.getheaders()}, content

    # Connections ----------------------------------------------------------------------------------------

    def _take(self, timeout: float) -> tuple[http.client.HTTPConnection, bool]:
        if self._aborted.is_set():
            raise _TemporaryFault("the request was called off")
        with self._lock:
            used = bool(self._idle)
            connection = self._idle.pop() if used else _connection(self.address, timeout)
            self._busy[connection] = connection.sock
        return connection, used

    def _put_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._busy.pop(connection, None)
            if connection.sock is not None:
                self._idle.append(connection)

    def _drop(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._busy.pop(connection, None)
        connection.close()

    def _shown(self, content: bytes | str) -> str:
        """Return the beginning of what a server sent, on one line and without the key."""
        text = clean_text(content.decode("utf-8", "replace") if isinstance(content, bytes) else content)
        if self._key is not None:
            text = text.replace(self._key, "***")
        text = " ".join(text.split()).rstrip(".")
        return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _connection(address: Address, timeout: float) -> http.client.HTTPConnection:
    """Return a connection that is not yet made; https goes through the proxy of the environment, if any."""
    if not address.secure:
        return http.client.HTTPConnection(address.host, address.port, timeout=timeout)
    proxy = urllib.request.getproxies().get("https")
    if proxy is None or urllib.request.proxy_bypass(address.host):
        return http.client.HTTPSConnection(address.host, address.port, timeout=timeout)
    via = Address.parse(proxy)
    connection = http.client.HTTPSConnection(via.host, via.port, timeout=timeout)
    connection.set_tunnel(address.host, address.port)
    return connection


def _shut(connected: socket.socket | None) -> None:
    if connected is not None:
        try:
            connected.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


def _seconds_to_wait(attempt: int, retry_after: float | None) -> float:
    """Return the wait that the server names, else exponential back-off with jitter between one half and the whole."""
    if retry_after is not None:
        return min(retry_after, LONGEST_WAIT)
    longest = min(FIRST_WAIT * 2.0**attempt, LONGEST_WAIT)
    return random.uniform(longest / 2, longest)  # noqa: S311  # spreads retries, hides nothing


def _number(text: str | None) -> float | None:
    """Return the seconds of a Retry-After header; a date counts as none."""
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:
        return None


def _message(content: bytes) -> bytes | str:
    """Return the reason in ``{"error": {"message": ...}}`` and its relatives, else the whole body."""
    try:
        value = clean_json(content)
    except ValueError:
        return content
    error = value.get("error", value) if isinstance(value, dict) else value
    if isinstance(error, dict):
        error = error.get("message", error.get("detail", error))
    return error if isinstance(error, str) else json.dumps(error)


def _connection_fault(error: Exception, shown: str) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "nothing accepts connections there"
    if isinstance(error, socket.gaierror):
        return "no such host is known"
    if isinstance(error, http.client.IncompleteRead | ConnectionError):
        return "it closed the connection without an answer"
    return f"the connection failed ({type(error).__name__}: {shown})"


def _status_hint(status: int) -> str | None:
    if status in (401, 403):
        return "Put the server's key into the environment variable that -o key_env=NAME names."
    if status == 404:
        return "Check the address; that of an OpenAI-compatible server mostly ends in /v1."
    return None
