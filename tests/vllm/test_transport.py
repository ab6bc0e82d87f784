"""Retries, limits and messages of the client, over the adapter and a stand-in server."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from harness.errors import AdapterError, UsageError
from harness.models.requests import GenerateOptions
from harness_vllm.client import Address, Client, _seconds_to_wait, _TemporaryFault

Ranker = Callable[..., Any]
OPTIONS = GenerateOptions(max_tokens=8)


@pytest.mark.parametrize("fault", ["429", "500", "502", "503", "504", "close", "half", "truncated"])
def test_what_may_go_well_the_next_time_is_repeated(ranker: Ranker, stand_in: Any, fault: str) -> None:
    model = ranker()
    wanted = model.generate(["The cat"], [OPTIONS])
    stand_in.faults += [fault, fault]
    before = len(stand_in.posted("completions"))
    assert model.generate(["The cat"], [OPTIONS]) == wanted
    sent = len(stand_in.posted("completions")) - before
    assert sent == 3
    assert model._session.client.repeated == 2


def test_a_page_that_is_no_json_is_reported_at_once(ranker: Ranker, stand_in: Any) -> None:
    model = ranker()
    stand_in.faults += ["page"]
    with pytest.raises(AdapterError, match="no JSON: '<html>Welcome</html>'"):
        model.generate(["The cat"], [OPTIONS])
    assert model._session.client.repeated == 0


def test_a_silent_server_is_asked_again(ranker: Ranker, stand_in: Any) -> None:
    stand_in.hang_seconds = 60.0
    model = ranker(timeout=2)
    stand_in.faults.append("hang")
    assert len(model.generate(["The cat"], [OPTIONS])) == 1
    assert model._session.client.repeated == 1


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("500", "was asked 3 times: it answered 500: planted fault"),
        ("429", "was asked 3 times: it answered 429: planted fault"),
        ("close", "was asked 3 times: it closed the connection without an answer"),
        ("hang", "was asked 3 times: it gave no answer within 0.1 s"),
    ],
)
def test_retries_end_with_a_sentence(ranker: Ranker, stand_in: Any, fault: str, message: str) -> None:
    model = ranker(retries=2, timeout=0.1 if fault == "hang" else 10)
    stand_in.faults += [fault] * 9
    with pytest.raises(AdapterError, match=message) as caught:
        model.generate(["The cat"], [OPTIONS])
    assert f"{stand_in.url}/completions" in caught.value.message
    assert "finished parts are kept" in (caught.value.hint or "")


def test_rejected_requests_are_not_repeated(ranker: Ranker, stand_in: Any) -> None:
    model = ranker()
    stand_in.faults += ["400"]
    with pytest.raises(AdapterError, match="answered 400: planted fault"):
        model.generate(["The cat"], [OPTIONS])
    assert len(stand_in.posted("completions")) == 1


def test_a_server_that_has_gone_says_how_to_go_on(ranker: Ranker, stand_in: Any) -> None:
    model = ranker(retries=1)
    stand_in.shutdown()
    stand_in.server_close()
    stand_in.faults += ["close"] * 9  # its threads would go on to answer on connections that are open
    with pytest.raises(AdapterError, match="nothing accepts connections there") as caught:
        model.generate(["The cat"], [OPTIONS])
    assert "start it again, and repeat the command" in (caught.value.hint or "")


def test_concurrency_is_bounded_and_order_kept(ranker: Ranker, stand_in: Any) -> None:
    prompts = [f"number {number}" for number in range(24)]
    one = ranker(concurrency=1).generate(prompts, [OPTIONS] * 24)
    stand_in.pause, stand_in.most_at_once = 0.1, 0
    assert ranker(concurrency=4).generate(prompts, [OPTIONS] * 24) == one
    assert stand_in.most_at_once == 4
    assert len(set(one)) > 12, "different prompts have equal answers"


def test_connections_are_kept_alive(ranker: Ranker, stand_in: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ranker(concurrency=2)
    made: list[Any] = []
    accept = stand_in.get_request

    def counted() -> Any:
        made.append(accept())
        return made[-1]

    monkeypatch.setattr(stand_in, "get_request", counted)
    model.generate(["The cat"] * 20, [OPTIONS] * 20)
    assert 1 <= len(made) <= 2


def test_nothing_begins_after_a_failure(ranker: Ranker, stand_in: Any) -> None:
    model = ranker(concurrency=2)
    stand_in.faults += ["400"] + ["hang"] * 20
    with pytest.raises(AdapterError, match="400"):
        model.generate([f"{number}" for number in range(40)], [OPTIONS] * 40)
    assert model._session.client.repeated == 0, "the one request under way was repeated"
    assert len(stand_in.posted("completions")) < 5
    stand_in.faults.clear()
    assert len(model.generate(["a", "b"], [OPTIONS] * 2)) == 2, "it works again afterwards"


@pytest.mark.parametrize("count", [1, 3])
def test_ctrl_c_calls_the_requests_off(ranker: Ranker, stand_in: Any, count: int) -> None:
    stand_in.hang_seconds = 60.0
    model = ranker(concurrency=2)
    stand_in.faults += ["hang"] * 9
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.generate([str(number) for number in range(count)], [OPTIONS] * count)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - started < 30
    stand_in.faults.clear()
    assert len(model.generate(["a"], [OPTIONS])) == 1, "it works again afterwards"


def test_a_closed_model_says_so(ranker: Ranker) -> None:
    model = ranker()
    model.close()
    with pytest.raises(AdapterError, match="has been closed"):
        model.generate(["a"], [OPTIONS])


def waited(attempt: int, retry_after: float | None = None) -> float:
    state: Any = SimpleNamespace(attempt_number=attempt)
    state.outcome = Future[None]()
    state.outcome.set_exception(_TemporaryFault("it answered 429", retry_after=retry_after))
    return _seconds_to_wait(state)


def test_waits_grow_with_jitter_and_follow_the_server() -> None:
    for attempt, longest in enumerate([0.5, 1.0, 2.0, 4.0], start=1):
        waits = [waited(attempt) for _ in range(50)]
        assert longest / 2 <= min(waits) < max(waits) <= longest
    assert waited(30) <= 60
    assert waited(1, 7.0) == 7.0
    assert waited(1, 7000.0) == 60


def test_the_key_is_sent_and_never_shown(
    ranker: Ranker, stand_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.key = "sk-secret-of-the-test"
    monkeypatch.setenv("MY_KEY", stand_in.key)
    model = ranker(key_env="MY_KEY")
    assert len(model.generate(["a"], [OPTIONS])) == 1
    assert "secret" not in repr(model.identity())
    stand_in.key = "another"
    with pytest.raises(AdapterError, match=r"answered 401: Wrong key: Bearer \*\*\*") as caught:
        model.generate(["a"], [OPTIONS])
    assert "secret" not in str(caught.value) + repr(caught.value.__dict__)


def test_a_key_with_line_breaks_is_rejected(ranker: Ranker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "a\nHost: elsewhere")
    with pytest.raises(UsageError, match="'MY_KEY'"):
        ranker(key_env="MY_KEY")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://user:pass@host/v1", "'http://host/v1' holds more than host, port and path"),
        ("http://host/v1?key=abc", "holds more than"),
        ("http://:8000/v1", "is not of the form"),
        ("http://host:port/v1", "is no URL"),
        ("ftp://host/v1", "is not of the form"),
    ],
)
def test_addresses_that_no_server_has(url: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        Address.parse(url)
    assert "pass@" not in str(caught.value)
    assert "abc" not in str(caught.value)


def test_addresses() -> None:
    address = Address.parse("https://[::1]:8443/api/v1/")
    assert (address.host, address.port, address.base, address.root) == ("::1", 8443, "/api/v1", "/api")
    assert address.url("/x") == "https://[::1]:8443/x"
    assert Address.parse("http://localhost/v1").is_local
    assert not Address.parse("http://example.org/v1").is_local
    for host in ("localhost.", "LOCALHOST", "127.0.0.1", "127.8.9.1", "[::1]", "[::ffff:127.0.0.1]"):
        assert Address.parse(f"http://{host}:8000/v1").is_local, host
    others = (
        "localhost.example.org",
        "127.example.org",
        "localhosts",
        "128.0.0.1",
        "[::1:2]",
        "127.0.0.1.org",
    )
    for host in others:
        assert not Address.parse(f"http://{host}/v1").is_local, host


def test_many_threads_share_one_client(stand_in: Any) -> None:
    client = Client(Address.parse(stand_in.url), timeout=5, retries=0)
    failures: list[Exception] = []

    def ask() -> None:
        try:
            for _ in range(20):
                client.get("/models")
        except AdapterError as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    assert failures == []


@pytest.mark.parametrize(
    ("body", "status", "sent"),
    [
        ({"error": {"message": "slow down", "code": 429}}, None, 3),
        ({"error": {"message": "slow down", "code": "503"}}, None, 3),
        ({"error": {"message": "slow down", "type": "rate_limit_error"}}, None, 3),
        ({"detail": "slow down", "status": 503}, None, 3),
        ({"error": {"message": "slow down", "code": 404}}, 404, 1),
        ({"error": "slow down"}, 200, 1),
        ({"error": {"message": "slow down", "code": "invalid_model"}}, 200, 1),
        ({"detail": "slow down"}, 200, 1),
    ],
)
def test_an_error_with_the_status_200_is_the_servers_message(
    body: dict[str, Any], status: int | None, sent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is repeated by its own code."""
    monkeypatch.setattr("harness_vllm.client.FIRST_WAIT", 0.001)
    client = Client(Address.parse("http://127.0.0.1:9/v1"), timeout=1, retries=2)
    calls = []

    def answer(*_: Any) -> tuple[int, httpx.Headers, bytes]:
        calls.append(1)
        return 200, httpx.Headers(), json.dumps(body).encode()

    monkeypatch.setattr(client, "_cancellable", answer)
    with pytest.raises(AdapterError, match="slow down") as caught:
        client.post("/completions", {})
    client.close()
    assert len(calls) == sent
    assert getattr(caught.value, "status", None) == status


@pytest.mark.parametrize("body", [{"error": None, "data": []}, {"detail": "", "choices": []}, [1]])
def test_an_empty_error_is_none(body: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(Address.parse("http://127.0.0.1:9/v1"), timeout=1, retries=0)
    reply = (200, httpx.Headers(), json.dumps(body).encode())
    monkeypatch.setattr(client, "_cancellable", lambda *_: reply)
    assert client.post("/completions", {}) == body
    client.close()
