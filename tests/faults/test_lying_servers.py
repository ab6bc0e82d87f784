"""Servers that lie, echo, drip or never end: no wrong number, no key on disk, no run that cannot be ended."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from harness.storage.records import read_records
from harness.storage.redaction import redact
from harness_vllm.client import read_key

from ..conftest import Cli
from ..vllm.conftest import STAND_IN, make_tokenizer
from .evaluation import read_results

pytestmark = pytest.mark.thorough

Tamper = Callable[[Any], Any]
Pieces = Callable[[str], Iterable[bytes]]
"""Return what a server sends, from the header of the key."""
RANKED = ("eval", "--tasks", "xcopa:sw", "--data", "sample", "--limit", "4")
WRITTEN = ("eval", "--tasks", "xnli:en", "--data", "sample", "--limit", "4", "--prompt", "letters")


class Handler(STAND_IN.Handler):  # type: ignore[misc]
    """The stand-in's, whose answers to requests that rank, write or embed are changed before they are sent."""

    def answer(self, value: Any) -> None:
        route = self.path.removeprefix("/v1/")
        tampered = self.server.tamper(value) if route in self.server.tampered else value
        if isinstance(tampered, bytes):
            self.send(200, tampered)
        else:
            super().answer(tampered)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tokenizer without a BOS token."""
    folder = tmp_path_factory.mktemp("model") / "plain"
    make_tokenizer(bos=False).save_pretrained(folder)
    return folder


@pytest.fixture
def server(tokenizer: Path) -> Iterator[Any]:
    """A running stand-in that answers rightly; `tamper` changes its answers."""
    with STAND_IN.StandIn(tokenizer, context=16_384) as running:
        running.RequestHandlerClass = Handler
        running.tampered = {"completions", "chat/completions", "embeddings"}
        running.tamper = lambda value: value
        running.thread.start()
        yield running
        running.shutdown()


def set_last(name: str, value: Any) -> Tamper:
    """Return what gives the last token of every prompt another value."""

    def tamper(answer: Any) -> Any:
        for choice in answer["choices"]:
            for number in choice["prompt_logprobs"][-1].values():
                number[name] = value
        return answer

    return tamper


def as_texts(answer: Any) -> Any:
    """Write every log-probability as a text."""
    for choice in answer["choices"]:
        for entry in choice["prompt_logprobs"][1:]:
            for number in entry.values():
                number["logprob"] = str(number["logprob"])
    return answer


def set_choice(name: str, value: Any) -> Tamper:
    """Return what gives every choice a further field."""

    def tamper(answer: Any) -> Any:
        for choice in answer["choices"]:
            choice[name] = value
        return answer

    return tamper


def one_more_counted(answer: Any) -> Any:
    """Count a token more, as a server does that puts a BOS token before the prompt."""
    answer["usage"]["prompt_tokens"] += 1
    return answer


def echoed(change: Callable[[dict[str, Any]], Any]) -> Tamper:
    """Return what changes the table of an echoed prompt."""

    def tamper(answer: Any) -> Any:
        for choice in answer["choices"]:
            change(choice["logprobs"])
        return answer

    return tamper


def _as_texts(table: dict[str, Any]) -> None:
    table["token_logprobs"] = [str(number) for number in table["token_logprobs"]]


def _with_other_ids(table: dict[str, Any]) -> None:
    table["tokens"] = ["token_id:999999"] * len(table["tokens"])


LIES = {
    "texts": ("prompt_logprobs", as_texts, ".logprob"),
    "a boolean": ("prompt_logprobs", set_last("logprob", False), ".logprob"),
    "NaN": ("prompt_logprobs", set_last("logprob", float("nan")), ".logprob"),
    "a huge integer": ("prompt_logprobs", set_last("logprob", -(10**400)), ".logprob"),
    "a positive number": ("prompt_logprobs", set_last("logprob", 0.5), ".logprob"),
    "a rank as text": ("prompt_logprobs", set_last("rank", "1"), ".rank"),
    "a rank of 0": ("prompt_logprobs", set_last("rank", 0), ".rank"),
    "a rank of 1.5": ("prompt_logprobs", set_last("rank", 1.5), ".rank"),
    "other ids": ("prompt_logprobs", set_choice("prompt_token_ids", [1, 2, 3]), "prompt_token_ids"),
    "ids of no list": ("prompt_logprobs", set_choice("prompt_token_ids", 7), "prompt_token_ids"),
    "ids of another type": ("echo", set_choice("prompt_token_ids", ["1"]), "prompt_token_ids"),
    "an index as text": ("prompt_logprobs", set_choice("index", "0"), "choices"),
    "a token more": ("prompt_logprobs", one_more_counted, "usage.prompt_tokens"),
    "a token more in the echo": ("echo", one_more_counted, "usage.prompt_tokens"),
    "texts in the echo": ("echo", echoed(_as_texts), "token_logprobs"),
    "texts among the likeliest": (
        "echo",
        echoed(lambda table: table["top_logprobs"][1].update(a="-0.1")),
        "top_logprobs",
    ),
    "NaN in the echo": (
        "echo",
        echoed(lambda table: table["token_logprobs"].__setitem__(1, float("nan"))),
        "token_logprobs",
    ),
    "named ids of other tokens": ("echo", echoed(_with_other_ids), "logprobs.tokens"),
}


@pytest.mark.parametrize(("form", "tamper", "field"), LIES.values(), ids=list(LIES))
def test_wrong_log_probabilities_fail_their_cell_and_name_the_field(
    cli: Cli, server: Any, tokenizer: Path, tmp_path: Path, form: str, tamper: Tamper, field: str
) -> None:
    server.tamper = tamper
    run = tmp_path / "run"
    options = ("-o", f"tokenizer={tokenizer}", "-o", f"scoring={form}")
    status, _, _ = cli(*RANKED, "--model", f"vllm:{server.url}", *options, "--output", run)
    assert status == 1
    [cell] = read_results(run)["cells"]
    assert cell["status"] == "failed"
    assert f"The server at {server.url}/completions" in cell["reason"]
    assert field in cell["reason"]
    assert "AdapterError" in (run / cell["traceback"]).read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["prompt_logprobs", "echo"])
def test_right_answers_with_ids_are_scored(
    cli: Cli, server: Any, tokenizer: Path, tmp_path: Path, form: str
) -> None:
    def name_ids(answer: Any) -> Any:
        for choice, ids in zip(answer["choices"][::-1], prompts(), strict=True):
            choice["prompt_token_ids"] = ids
            if form == "echo":
                choice["logprobs"]["tokens"] = [f"token_id:{number}" for number in [*ids, 3]]
        return answer

    def prompts() -> list[list[int]]:
        sent: Any = server.requests[-1][1]["prompt"]
        return sent if isinstance(sent[0], list) else [sent]

    server.tamper = name_ids
    run = tmp_path / "run"
    options = ("-o", f"tokenizer={tokenizer}", "-o", f"scoring={form}", "-o", "concurrency=1")
    status, _, err = cli(*RANKED, "--model", f"vllm:{server.url}", *options, "--output", run)
    assert status == 0, err
    assert [(cell["status"], cell["n"]) for cell in read_results(run)["cells"]] == [("ok", 4)]


@pytest.mark.parametrize("value", ["0.5", True, 10**400], ids=["text", "boolean", "huge"])
def test_an_embedding_holds_numbers_only(cli: Cli, server: Any, tmp_path: Path, value: Any) -> None:
    def tamper(answer: Any) -> Any:
        for entry in answer["data"]:
            entry["embedding"] = [value] * len(entry["embedding"])
        return answer

    server.tamper = tamper
    run = tmp_path / "run"
    given = ("eval", "--tasks", "tatoeba:sw", "--data", "sample", "--limit", "4", "--output", run)
    assert cli(*given, "--model", f"vllm:{server.url}", "-o", "runner=pooling")[0] == 1
    [cell] = read_results(run)["cells"]
    assert cell["status"] == "failed"
    assert f"{server.url}/embeddings" in cell["reason"]


KEY = "sk-trust-0123456789abcdef"


class Raw:
    """A server on a socket: sends the same bytes, piece by piece, as the answer to every POST below /v1."""

    def __init__(self, pieces: Pieces, seconds: float = 0.0) -> None:
        self.asked = 0
        self._pieces = pieces
        self._seconds = seconds
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._closed = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def close(self) -> None:
        self._closed.set()
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                connected, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connected,), daemon=True).start()

    def _serve(self, connected: socket.socket) -> None:
        with connected, suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                request += connected.recv(65_536)
            head, _, body = request.partition(b"\r\n\r\n")
            length = re.search(rb"Content-Length: (\d+)", head)
            while length is not None and len(body) < int(length[1]):
                body += connected.recv(65_536)
            if head.startswith(b"GET"):
                models = b'{"data": [{"id": "tiny"}]}'
                found = models if b"/v1/models " in head else b"{}"
                connected.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(found) + found)
                return
            self.asked += 1
            key = re.search(rb"Authorization: (.*)\r\n", head + b"\r\n")
            for piece in self._pieces("" if key is None else key[1].decode()):
                connected.sendall(piece)
                if self._closed.wait(self._seconds):
                    return


@pytest.fixture
def raw() -> Iterator[Callable[..., Raw]]:
    """A function that starts a `Raw` server."""
    started: list[Raw] = []

    def start(pieces: Pieces, seconds: float = 0.0) -> Raw:
        started.append(Raw(pieces, seconds))
        return started[-1]

    yield start
    for one in started:
        one.close()


def status_line(authorization: str) -> list[bytes]:
    """Answer with the header in a status line that is none."""
    return [f"{authorization} HTTP/1.1 200 OK\r\n\r\n".encode()]


def status_reason(authorization: str) -> list[bytes]:
    """Answer with the header as the reason of an error status, and in an error page."""
    page = f"<b>{authorization}</b>".encode()
    return [f"HTTP/1.1 403 {authorization}\r\nContent-Length: {len(page)}\r\n\r\n".encode() + page]


def error_body(authorization: str) -> list[bytes]:
    """Answer with the header in an error message, every character escaped."""
    escaped = "".join(f"\\u{ord(character):04x}" for character in authorization)
    body = f'{{"error": {{"message": {{"wrong": "{escaped}"}}}}}}'.encode()
    return [b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n" % len(body) + body]


def files_with(folder: Path, text: str) -> list[str]:
    """Return the files below a folder that hold a text: as they are, and as Parquet columns."""
    found = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = file.read_bytes()
        if file.suffix == ".parquet":
            content += "\n".join(map(repr, read_records(file))).encode()
        if text.encode() in content:
            found.append(str(file))
    return found


@pytest.mark.parametrize("debug", [(), ("--debug",)], ids=["plain", "debug"])
@pytest.mark.parametrize("pieces", [status_line, status_reason, error_body])
def test_a_key_that_a_failing_server_echoes_is_never_kept_or_shown(
    cli: Cli,
    raw: Callable[..., Raw],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pieces: Pieces,
    debug: tuple[str, ...],
) -> None:
    monkeypatch.setenv("TRUST_KEY", KEY)
    server, run = raw(pieces), tmp_path / "run"
    options = ("-o", "key_env=TRUST_KEY", "-o", "retries=0", "--output", run)
    status, out, err = cli(*debug, *WRITTEN, "--model", f"openai:{server.url}", *options)
    assert status == 1
    assert server.asked > 0
    [cell] = read_results(run)["cells"]
    assert "Bearer ***" in cell["reason"]
    assert KEY not in out + err
    assert files_with(tmp_path, KEY) == []


@pytest.mark.parametrize("adapter", ["openai", "vllm"])
def test_a_key_in_an_answer_is_never_kept_or_shown(
    cli: Cli, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adapter: str
) -> None:
    def echo(answer: Any) -> Any:
        for choice in answer["choices"]:
            text = f"A. You sent Bearer {KEY}, '{KEY}'."
            if "message" in choice:
                choice["message"]["content"] = text
            choice["text"] = text
        return answer

    monkeypatch.setenv("TRUST_KEY", KEY)
    server.key, server.tamper, server.version = KEY, echo, f"0.32.0+{KEY}"
    server.root = f"/models/{KEY}"
    run = tmp_path / "run"
    options = ("--method", "generate", "-o", "key_env=TRUST_KEY", "--output", run)
    status, out, err = cli(*WRITTEN, "--model", f"{adapter}:{server.url}", *options)
    assert status == 0, err
    status, again, _ = cli("eval", "--resume", run)
    assert status == 0
    [record, *_] = read_records(next(run.glob("records/**/*.parquet")))
    assert record.prediction["raw"] == "A. You sent Bearer ***, '***'."
    assert KEY not in out + err + again
    assert files_with(tmp_path, KEY) == []


def test_a_short_key_is_hidden_behind_bearer_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUST_KEY", "EMPTY")
    assert read_key("TRUST_KEY") == "EMPTY"
    assert redact("EMPTY rooms, Bearer EMPTY") == "EMPTY rooms, Bearer ***"


def with_surrogate(answer: Any) -> Any:
    """Put a lone surrogate into the text of every answer."""
    for choice in answer["choices"]:
        choice["message"]["content"] = "A \ud83d!"
    return answer


@pytest.mark.parametrize("where", ["answer", "journal"])
def test_a_lone_surrogate_is_replaced_and_its_item_flagged(
    cli: Cli, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    server.tamper = with_surrogate
    run = tmp_path / "run"
    command: tuple[object, ...] = (*WRITTEN, "--model", f"openai:{server.url}", "--output", run)
    if where == "journal":  # as the harness wrote it before texts were cleaned
        with monkeypatch.context() as before:
            before.setattr("harness.storage.redaction._SURROGATE", re.compile("(?!)"))
            assert cli(*command)[0] == 1
        asked = len(server.requests)
        command = ("eval", "--resume", run)
    status, out, err = cli(*command)
    assert status == 0, err
    [cell] = read_results(run)["cells"]
    assert (cell["status"], cell["replaced"]) == ("ok", 4)
    for record in read_records(next(run.glob("records/**/*.parquet"))):
        assert record.prediction["raw"] == "A \ufffd!"
        assert record.flags["replaced"]
    assert "4 answers with U+FFFD" in out
    assert where == "answer" or len(server.requests) == asked, "the journal was not used"


def test_no_decoded_bytes_give_a_surrogate(tokenizer: Path) -> None:
    from transformers import AutoTokenizer

    loaded: Any = AutoTokenizer.from_pretrained(tokenizer)
    numbers = range(len(loaded))
    texts = [loaded.decode([one, other]) for one in numbers for other in range(0, len(loaded), 7)]
    assert any("\ufffd" in text for text in texts), "no sequence was invalid UTF-8"
    assert not any("\ud800" <= character <= "\udfff" for text in texts for character in text)


def endless(head: bytes, piece: bytes) -> Pieces:
    """Send a head, and the same piece for ever."""
    return lambda _: chain([head], repeat(piece))


OK = b"HTTP/1.1 200 OK\r\n"
DRIPS = {
    "headers": endless(OK, b"X"),
    "a long body": endless(OK + b"Content-Length: 1000000\r\n\r\n", b" "),
    "a body until closed": endless(b"HTTP/1.0 200 OK\r\n\r\n", b" "),
    "chunks": endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
}
INTERIM = endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)
HUGE = {
    "announced": lambda _: [OK + b"Content-Length: 100000000000000\r\n\r\n{"],
    "a chunk": endless(OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffff\r\n", b" " * 65_536),
}


@pytest.mark.parametrize("pieces", [*DRIPS.values(), INTERIM], ids=[*DRIPS, "interim answers"])
def test_a_request_ends_within_its_time(
    cli: Cli, raw: Callable[..., Raw], tmp_path: Path, pieces: Pieces
) -> None:
    server, run = raw(pieces, 0.05), tmp_path / "run"
    options = ("-o", "timeout=0.5", "-o", "retries=0", "--output", run)
    started = time.monotonic()
    assert cli(*WRITTEN, "--model", f"openai:{server.url}", *options)[0] == 1
    assert time.monotonic() - started < 30
    [cell] = read_results(run)["cells"]
    assert "within 0.5 s" in cell["reason"]


@pytest.mark.parametrize("pieces", HUGE.values(), ids=HUGE)
def test_an_answer_has_a_largest_size(
    cli: Cli, raw: Callable[..., Raw], tmp_path: Path, pieces: Pieces
) -> None:
    server, run = raw(pieces), tmp_path / "run"
    options = ("-o", "max_answer_mib=1", "--output", run)
    assert cli(*WRITTEN, "--model", f"openai:{server.url}", *options)[0] == 1
    [cell] = read_results(run)["cells"]
    assert "more than 1 MiB" in cell["reason"]
    assert "max_answer_mib" in cell["reason"]


def _signal_when(ready: Callable[[float], object], number: int) -> threading.Thread:
    """Send this process a signal as soon as a condition holds, which is asked with seconds to wait."""

    def stop() -> None:
        while not ready(0.02):
            pass
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("pieces", DRIPS.values(), ids=DRIPS)
def test_one_signal_ends_a_run_that_waits_for_a_dripping_server(
    cli: Cli,
    raw: Callable[..., Raw],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pieces: Pieces,
    number: int,
) -> None:
    monkeypatch.setattr("harness_vllm.session.SECONDS_TO_FINISH", 0.3)
    server, run = raw(pieces, 0.05), tmp_path / "run"

    def is_asked(seconds: float) -> bool:
        time.sleep(seconds)
        return server.asked > 0

    thread = _signal_when(is_asked, number)
    started = time.monotonic()
    status, _, err = cli(*WRITTEN, "--model", f"openai:{server.url}", "--output", run)
    thread.join()
    assert status == 130, err
    assert time.monotonic() - started < 60, "it waited for the timeout of 300 s"
    assert [cell["status"] for cell in read_results(run)["cells"]] == ["skipped"]
    assert f"--resume {run}" in err


@pytest.mark.parametrize("route", ["version", "tokenize", "prompt_logprobs"])
def test_one_signal_ends_a_run_that_opens_a_silent_server(
    cli: Cli, server: Any, tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    monkeypatch.setattr("harness_vllm.session.SECONDS_TO_FINISH", 0.3)
    hanging = threading.Event()

    class Silent(Handler):
        def _hang(self) -> bool:
            waits = route in self.path or (route == "prompt_logprobs" and self.path.endswith("/completions"))
            if waits:
                hanging.set()
                time.sleep(120)
            return waits

        def do_GET(self) -> None:
            if not self._hang():
                super().do_GET()

        def do_POST(self) -> None:
            if not self._hang():
                super().do_POST()

    server.RequestHandlerClass = Silent

    thread = _signal_when(hanging.wait, signal.SIGTERM)
    started = time.monotonic()
    given = (*RANKED, "--model", f"vllm:{server.url}", "-o", f"tokenizer={tokenizer}")
    status, _, err = cli(*given, "--output", tmp_path / "run")
    thread.join()
    assert status == 130, err
    assert time.monotonic() - started < 60
