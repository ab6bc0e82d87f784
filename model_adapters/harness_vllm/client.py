"""JSON over HTTP with a deadline, a size limit and bounded retries; one client serves many threads."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, NoReturn
from urllib.parse import urlsplit

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt

from harness import AdapterError, UsageError
from harness.storage import add_secret, clean_json, clean_text

FIRST_WAIT = 0.5
SECONDS_TO_CONNECT = 10.0
"""After this long a machine that is switched off counts as one that does not listen."""
LONGEST_WAIT = 60.0
MEBIBYTE = 1 << 20
TEMPORARY = frozenset({408, 429, 500, 502, 503, 504, 529})
_BEGINS_JSON = frozenset({b"", b"{", b"["})
_CODES = ("code", "status", "status_code", "type")
"""Where errors name their status, as a number or in words."""
_STATUS_WORDS = {
    "rate_limit": 429,
    "overloaded": 529,
    "unavailable": 503,
    "server_error": 500,
    "timeout": 504,
}
SHOWN = 300
"""Characters of a server's answer that an error shows."""


class StatusError(AdapterError):
    """A server answered with an error status that no retry changes."""

    def __init__(self, url: str, status: int, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"The server at {url} answered {status}: {reason}.", hint=hint)
        self.status = status
        self.reason = reason


class NoAnswer(AdapterError):
    """A request got no answer that can be used, however often it was repeated."""


class Unreachable(NoAnswer):
    """No connection can be made, for this request or any other."""


class _TemporaryFault(Exception):
    """A fault that a retry may solve."""

    def __init__(
        self, reason: str, *, cause: httpx.TransportError | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(reason)
        self.lost = cause is not None
        """Whether there was no answer at all: the server may be gone."""
        self.unreachable = isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout)
        """Whether not even a connection could be made."""
        self.retry_after = retry_after


class Client:
    """Sends requests to one server: httpx in an event loop of its own, so that requests can be cancelled.

    Args:
        address: Where the server is.
        timeout: Seconds that a request may take, from the connection to the last byte of the answer.
        retries: How often a request is repeated.
        key: Sent as a bearer token, and never shown.
        max_answer_mib: Mebibytes that one answer may have.
        revive: Called where no answer comes; True means that the server has been started again.
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
        self._revive = revive or (lambda: False)
        authorization = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._http = httpx.AsyncClient(
            headers={"Accept": "application/json", "Accept-Encoding": "identity", **authorization},
            timeout=httpx.Timeout(None, connect=SECONDS_TO_CONNECT),  # `_send` limits the whole request
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
            trust_env=address.secure,  # a proxy is for https alone
            verify=address.secure,  # spares the reading of certificates
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="harness-http", daemon=True)
        self._thread.start()
        self._under_way: set[Future[Any]] = set()
        self._lock = threading.Lock()
        self._aborted = False
        self._draining = threading.Event()
        """Set while no request is repeated, after `abort` too: it wakes the threads that wait to do so."""

    def get(self, path: str, *, timeout: float | None = None, retries: int | None = None) -> Any:
        """Return the JSON of a path below the base; raises `AdapterError`, `StatusError` for most 4xx."""
        return self._request("GET", self.address.base + path, None, timeout, retries)

    def post(self, path: str, payload: Mapping[str, Any]) -> Any:
        """Return the JSON that a path below the base gives for `payload`; raises as `get` does."""
        return self._request("POST", self.address.base + path, payload)

    def get_root(self, path: str) -> Any:
        """Return the JSON of a path next to the base."""
        return self._request("GET", self.address.root + path)

    def post_root(self, path: str, payload: Mapping[str, Any]) -> Any:
        """Return the JSON that a path next to the base answers for `payload`."""
        return self._request("POST", self.address.root + path, payload)

    def drain(self) -> None:
        """Repeat nothing from now on: requests under way end with the answer, or the fault, of this attempt."""
        self._draining.set()

    def abort(self) -> None:
        """Make all requests under way end at once, with an `AdapterError`."""
        self._draining.set()
        with self._lock:
            self._aborted = True
            for future in self._under_way:
                future.cancel()

    def resume(self) -> None:
        """Allow requests, and repeat them, again after `abort` or `drain`."""
        self._aborted = False
        self._draining.clear()

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._http.aclose(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # One request ----------------------------------------------------------------------------------------

    def _request(
        self,
        method: str,
        path: str,
        payload: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        retries: int | None = None,
    ) -> Any:
        url = self.address.url(path)
        body = None if payload is None else json.dumps(payload, separators=(",", ":")).encode()
        retrying = Retrying(
            retry=retry_if_exception_type(_TemporaryFault),
            stop=stop_after_attempt(1 + (self.retries if retries is None else retries)),
            wait=_seconds_to_wait,
            before_sleep=lambda state: self._pause(url, state),
            sleep=lambda _: None,
            retry_error_callback=lambda state: _give_up(url, state),
        )
        return retrying(self._attempt, method, url, body, timeout or self.timeout)

    def _pause(self, url: str, state: RetryCallState) -> None:
        """Wait before a request is repeated; raises `AdapterError` where nothing is repeated any more."""
        if self._draining.wait(state.upcoming_sleep):
            _give_up(url, state)
        with self._lock:
            self.repeated += 1

    def _attempt(self, method: str, url: str, body: bytes | None, timeout: float) -> Any:
        """Return the answer; raises `_TemporaryFault`, or `AdapterError` for what no retry changes."""
        while True:
            try:
                status, headers, content = self._cancellable(method, url, body, timeout)
            except _TemporaryFault as fault:
                if not self._draining.is_set() and fault.lost and self._revive():
                    continue
                raise
            return self._read(url, status, headers, content)

    def _cancellable(
        self, method: str, url: str, body: bytes | None, timeout: float
    ) -> tuple[int, httpx.Headers, bytes]:
        with self._lock:
            if self._aborted:
                raise AdapterError(f"The request to {url} was cancelled.")
            future = asyncio.run_coroutine_threadsafe(self._send(method, url, body, timeout), self._loop)
            self._under_way.add(future)
        try:
            return future.result()
        except CancelledError as error:
            raise AdapterError(f"The request to {url} was cancelled.") from error
        finally:
            future.cancel()
            with self._lock:
                self._under_way.discard(future)

    async def _send(
        self, method: str, url: str, body: bytes | None, timeout: float
    ) -> tuple[int, httpx.Headers, bytes]:
        """Return status, headers and body of the answer; raises `_TemporaryFault` where none came."""
        headers = {} if body is None else {"Content-Type": "application/json"}
        most = self._max_answer_mib * MEBIBYTE
        content = bytearray()
        try:
            async with (
                asyncio.timeout(timeout),
                self._http.stream(method, url, content=body, headers=headers) as answer,
            ):
                if int(answer.headers.get("content-length", 0)) > most:
                    raise self._too_large(url)
                async for piece in answer.aiter_raw():
                    content += piece
                    if len(content) > most:
                        raise self._too_large(url)
        except TimeoutError as error:
            raise _TemporaryFault(f"it gave no answer within {timeout:g} s") from error
        except httpx.TransportError as error:
            raise _TemporaryFault(_connection_fault(error), cause=error) from error
        return answer.status_code, answer.headers, bytes(content)

    def _too_large(self, url: str) -> AdapterError:
        return AdapterError(
            f"The server at {url} sent an answer of more than {self._max_answer_mib} MiB.",
            hint="Allow more with -o max_answer_mib=N; -o prompts_per_request=1 makes answers of vllm smaller.",
        )

    def _read(self, url: str, status: int, headers: httpx.Headers, content: bytes) -> Any:
        """Return the JSON of an answer, without secrets."""
        if 200 <= status < 300:
            try:
                answer = clean_json(content)
            except ValueError as error:
                reason = f"answered with something that is no JSON: {self._shown(content)!r}"
                if content.lstrip()[:1] in _BEGINS_JSON:  # cut off on its way
                    raise _TemporaryFault(f"it {reason}") from error
                raise AdapterError(f"The server at {url} {reason}.") from error
            if (code := _code_of_error(answer)) is None:
                return answer
            status = code or status
        reason = self._shown(_message(content))
        if status in TEMPORARY:
            seconds = _number(headers.get("retry-after"))
            raise _TemporaryFault(f"it answered {status}: {reason}", retry_after=seconds)
        raise StatusError(url, status, reason or "no reason given", hint=_status_hint(status))

    def _shown(self, content: bytes | str) -> str:
        """Return the beginning of what a server sent, on one line and without the key."""
        text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
        return _one_line(text if self._key is None else text.replace(self._key, "***"))


def _one_line(text: str) -> str:
    text = " ".join(clean_text(text).split()).rstrip(".")
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _give_up(url: str, state: RetryCallState) -> NoReturn:
    """Raise the error for a request that is not repeated any more."""
    fault = None if state.outcome is None else state.outcome.exception()
    assert isinstance(fault, _TemporaryFault)
    times = "once" if state.attempt_number == 1 else f"{state.attempt_number} times"
    hint = (
        "See whether it is still running, start it again, and repeat the command: finished parts are kept."
        if fault.lost
        else "Repeat the command later: finished parts are kept. -o concurrency=N and -o timeout=SECONDS "
        "ease its load."
    )
    kind = Unreachable if fault.unreachable else NoAnswer
    raise kind(f"The server at {url} was asked {times}: {fault}.", hint=hint) from fault


def _seconds_to_wait(state: RetryCallState) -> float:
    """Return the wait that the server names, else exponential back-off with jitter between one half and the whole."""
    fault = None if state.outcome is None else state.outcome.exception()
    if isinstance(fault, _TemporaryFault) and fault.retry_after is not None:
        return min(fault.retry_after, LONGEST_WAIT)
    longest = min(FIRST_WAIT * 2.0 ** (state.attempt_number - 1), LONGEST_WAIT)
    return random.uniform(longest / 2, longest)  # noqa: S311  # spreads retries, hides nothing


def _number(text: str | None) -> float | None:
    """Return the seconds of a Retry-After header; a date counts as none."""
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:
        return None


def _code_of_error(answer: Any) -> int | None:
    """Return the status that an error in an answer of status 200 names, 0 where it names none; None for no error.

    Gateways send ``{"error": {"message": ..., "code": 429}}`` or ``{"detail": ...}`` with the status 200.
    """
    if not isinstance(answer, dict) or not (error := answer.get("error") or answer.get("detail")):
        return None
    inner = error if isinstance(error, dict) else {}
    codes = [str(source.get(name)).lower() for source in (inner, answer) for name in _CODES]
    numbers = [int(code) for code in codes if re.fullmatch("[45][0-9]{2}", code)]
    words = [status for code in codes for word, status in _STATUS_WORDS.items() if word in code]
    return next(iter([*numbers, *words]), 0)


def _message(content: bytes) -> bytes | str:
    """Return the reason in ``{"error": {"message": ...}}`` and its relatives, else the whole body."""
    try:
        value = clean_json(content)
    except ValueError:
        return content
    error = (value.get("error") or value) if isinstance(value, dict) else value
    if isinstance(error, dict):
        error = error.get("message", error.get("detail", error))
    return error if isinstance(error, str) else json.dumps(error)


def _connection_fault(error: httpx.TransportError) -> str:
    causes = [type(cause) for cause in _causes(error)]
    if socket.gaierror in causes:
        return "no such host is known"
    if isinstance(error, httpx.ConnectError) and not any(issubclass(cause, ssl.SSLError) for cause in causes):
        return "nothing accepts connections there"
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection was made within {SECONDS_TO_CONNECT:g} s"
    # What httpx calls a protocol error is a connection that ended early, or an answer that is no HTTP.
    if isinstance(error, httpx.ReadError | httpx.WriteError) or "connect" in str(error):
        return "it closed the connection without an answer"
    return f"the connection failed ({type(error).__name__}: {_one_line(str(error))})"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _status_hint(status: int) -> str | None:
    if status in (401, 403):
        return "Put the server's key into the environment variable that -o key_env=NAME names."
    if status == 404:
        return "Check the address; that of an OpenAI-compatible server mostly ends in /v1."
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """``http://host:port/v1``, in parts."""

    secure: bool
    host: str
    port: int
    base: str
    """Path in front of ``/completions``, without a slash at its end: ``/v1``."""

    @classmethod
    def parse(cls, url: str) -> Address:
        """Return the parts of a URL; raises `UsageError` for one that no server can have, or that holds a key."""
        try:
            split = urlsplit(url)
            port = split.port
        except ValueError as error:
            raise UsageError(f"The address {_without_user(url)!r} is no URL: {error}.") from error
        if split.username is not None or split.password is not None or split.query or split.fragment:
            raise UsageError(
                f"The address {_without_user(url.split('?', maxsplit=1)[0])!r} holds more than host, port and path.",
                hint="Put a key into an environment variable and name it with -o key_env=NAME.",
            )
        if split.scheme not in ("http", "https") or not split.hostname:
            raise UsageError(f"The address {url!r} is not of the form http://HOST:PORT/v1.")
        secure = split.scheme == "https"
        default = 443 if secure else 80
        return cls(secure=secure, host=split.hostname, port=port or default, base=split.path.rstrip("/"))

    @property
    def root(self) -> str:
        """Path of the routes next to ``/v1``: ``/tokenize``, ``/version``."""
        return self.base.removesuffix("/v1")

    @property
    def is_local(self) -> bool:
        """Whether the server runs on this machine."""
        try:
            address = ip_address(self.host)
        except ValueError:
            return self.host.rstrip(".") == "localhost"
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback

    def __str__(self) -> str:
        """Return the URL as it is written after ``--model vllm:``."""
        return self.url(self.base)

    def url(self, path: str) -> str:
        """Return the whole URL of a path on the server."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}{path}"


def is_url(ref: str) -> bool:
    """Return whether a model is named by the address of its server."""
    return ref.startswith(("http://", "https://"))


def read_key(name: str) -> str | None:
    """Return the key that an environment variable holds, None where it is unset or empty; it is never shown."""
    key = os.environ.get(name, "").strip()
    if any(not 32 < ord(character) < 127 for character in key):
        raise UsageError(f"The environment variable {name!r} holds characters that keys cannot have.")
    if key:
        add_secret(key)
    return key or None


def _without_user(url: str) -> str:
    scheme, mark, location = url.partition("://")
    host, slash, path = location.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"
