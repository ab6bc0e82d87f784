"""A stand-in for vLLM's server: its routes and shapes, deterministic numbers, and every fault that a server can have.

It imports nothing of the harness. A token's log-probability depends on all tokens up to it, through a checksum
(`logprob` and `rank`), so a request that loses, reorders or shifts a token gets another number.

Run as a script it behaves like ``python -m vllm.entrypoints.openai.api_server --port N ...``; the environment
variable STAND_IN says what goes wrong: ``dies``, ``hangs``, ``stubborn`` (ignores SIGTERM), ``mortal`` (dies when
the file STAND_IN_DEATH exists, and removes it).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

THOUGHT = ("the", "user", "asks,\nso", "I", "think", "about", "it")
"""Reasoning, one word per token; one of them has the stop string of most prompts."""
WORDS = ("red", "green", "blue", "yes", "no", "one", "two", "three")
DIMENSION = 8
CONSTRAINTS = ("structured_outputs", "guided_choice", "guided_regex", "guided_json")


def _checksum(ids: Sequence[int]) -> int:
    return zlib.crc32(" ".join(map(str, ids)).encode())


def logprob(ids: Sequence[int]) -> float:
    """The log-probability of the last of the tokens after the others."""
    return -(1 + _checksum(ids) % 1000) / 250


def rank(ids: Sequence[int]) -> int:
    """The rank of the last of the tokens; 1 in half of the cases."""
    return 1 + _checksum([*ids, 7]) % 2


def written(ids: Sequence[int], count: int) -> tuple[str, bool]:
    """What is written after the tokens: words, one per token, and whether they ended before the limit."""
    length = 1 + _checksum(ids) % 6
    words = [WORDS[_checksum([*ids, number]) % len(WORDS)] for number in range(min(length, count))]
    return " ".join(words), length < count


def embedding(text: str) -> list[float]:
    """The vector of a text, of no particular length."""
    return [1 + zlib.crc32(f"{number} {text}".encode()) % 100 for number in range(DIMENSION)]


class StandIn(ThreadingHTTPServer):
    """The server; `faults` says what goes wrong with the next requests that generate or embed."""

    daemon_threads = True
    logprob = staticmethod(logprob)
    rank = staticmethod(rank)
    written = staticmethod(written)
    embedding = staticmethod(embedding)
    request_queue_size = 128

    hang_seconds = 1.5

    def __init__(
        self,
        folder: Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        key: str | None = None,
        context: int = 64,
    ) -> None:
        super().__init__((host, port), Handler)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.models = ["tiny"]
        self.root: str | None = None
        """Folder that the server says its model comes from."""
        self.version: str | None = "0.32.0"
        self.context: int | None = context
        self.key = key
        self.faults: list[str] = []
        self.thinks: str | None = None
        """How it reasons before answers: ``text`` writes both marks, ``opened`` the second alone as its template wrote
        the first, ``field`` gives the reasoning apart."""
        self.reasoning_field = "reasoning"
        self.chances: tuple[random.Random, float, Sequence[str]] | None = None
        """Draws for every request whether a fault is planted; the faults take turns."""
        self.planted: Counter[str] = Counter()
        self.missing: set[str] = set()
        """What this kind of server does not know: ``tokenize``, ``prompt_logprobs``, ``chat``, ``embeddings``."""
        self.next_tokens: float | None = None
        """How far its log-probabilities of next tokens are from those of prompts; None where it gives none."""
        self.lost: int | None = None
        """A token whose log-probability after a context is minus infinity."""
        self.stale = 0.0
        """How far the numbers of a prompt are off where it was sent before, as in vLLM issue 42019."""
        self.sent: set[tuple[int, ...]] = set()
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.served: list[tuple[str, dict[str, Any]]] = []
        """The requests that got an answer, in the order they came."""
        self.pause = 0.0
        self.most_at_once = 0
        self._at_once = 0
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def posted(self, path: str) -> list[dict[str, Any]]:
        """The requests to a path, in the order they came."""
        return [payload for asked, payload in self.requests if asked == path]

    def next_fault(self, route: str) -> str | None:
        """Return what goes wrong with a request that has just come; the lock is held."""
        if route == "tokenize":
            return None
        if self.faults:
            return self.faults.pop(0)
        if self.chances is None:
            return None
        dice, share, kinds = self.chances
        if dice.random() >= share:
            return None
        fault = kinds[self.planted.total() % len(kinds)]
        self.planted[fault] += 1
        return fault

    def enter(self) -> None:
        with self.lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)

    def leave(self) -> None:
        with self.lock:
            self._at_once -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that leave are no news."""

    def ids(self, text: str, *, special: bool = False) -> list[int]:
        found: list[int] = self.tokenizer.encode(text, add_special_tokens=special).ids
        return found


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn
    cut = False
    """Whether the answer loses its second half."""

    def log_message(self, format: str, *arguments: Any) -> None:
        """Silent."""

    def do_GET(self) -> None:
        if self.path == "/health":
            self.send(200, b"")
        elif self.path == "/version" and self.server.version is not None:
            self.answer({"version": self.server.version})
        elif self.path == "/v1/models" and self.allowed():
            entries = [
                {"id": name, "max_model_len": self.server.context, "root": self.server.root}
                for name in self.server.models
            ]
            self.answer({"object": "list", "data": entries})
        else:
            self.reject(404, "Not Found")

    def do_POST(self) -> None:
        route = self.path.removeprefix("/v1").strip("/")
        with self.server.lock:
            fault = self.server.next_fault(route)
        if fault == "reset unread":
            self.reset()
            return
        payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.cut = fault == "truncated"
        with self.server.lock:
            self.server.requests.append((route, payload))
        self.server.enter()
        try:
            time.sleep(self.server.pause)
            if self.allowed() and not (fault and self.spoil(fault)):
                with self.server.lock:
                    self.server.served.append((route, payload))
                self.serve(route, payload, fault)
        finally:
            self.server.leave()

    def allowed(self) -> bool:
        if not self.path.startswith("/v1") or self.server.key is None:
            return True
        if self.headers.get("Authorization") == f"Bearer {self.server.key}":
            return True
        self.reject(401, f"Wrong key: {self.headers.get('Authorization')}")
        return False

    def spoil(self, fault: str) -> bool:
        """Answer wrongly, and say whether that was all of the answer."""
        if fault.isdigit():
            self.reject(
                int(fault), "planted fault", headers={"Retry-After": "0.02"} if fault == "429" else {}
            )
        elif fault == "hang":
            time.sleep(self.server.hang_seconds)
            self.close_connection = True
        elif fault == "close":
            self.close_connection = True
        elif fault == "reset":
            self.reset()
        elif fault == "half":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"choices": [')
            self.close_connection = True
        elif fault == "malformed":
            self.send(200, b'{"choices": [')
        elif fault == "page":
            self.send(200, b"<html>Welcome</html>")
        elif fault == "empty":
            self.answer({})
        else:
            return False
        return True

    def serve(self, route: str, payload: dict[str, Any], fault: str | None) -> None:
        if route in self.server.missing:
            self.reject(404, "Not Found")
        elif payload["model"] not in self.server.models:
            self.reject(404, f"The model `{payload['model']}` does not exist.")
        elif route == "tokenize":
            self.tokenize(payload)
        elif route == "completions":
            self.complete(payload, fault)
        elif route == "chat/completions":
            self.chat(payload)
        elif route == "responses":
            self.respond(payload)
        elif route == "embeddings":
            self.embed(payload, fault)
        else:
            self.reject(404, "Not Found")

    def tokenize(self, payload: dict[str, Any]) -> None:
        if "messages" in payload:
            ids = self.chat_ids(payload)
        else:
            ids = self.server.ids(payload["prompt"], special=payload.get("add_special_tokens", True))
        self.answer({"count": len(ids), "max_model_len": self.server.context, "tokens": ids})

    def complete(self, payload: dict[str, Any], fault: str | None) -> None:
        prompts = payload["prompt"] if isinstance(payload["prompt"][0], list) else [payload["prompt"]]
        for ids in prompts:
            if self.server.context is not None and len(ids) >= self.server.context:
                self.reject(400, f"The prompt ({len(ids)}) is longer than the maximum model length.")
                return
        choices = [self.choice(ids, payload, number) for number, ids in enumerate(prompts)]
        if fault == "fewer":
            choices = choices[:-1]
        elif fault == "more":
            choices.append({**choices[-1], "index": len(choices)})
        elif fault == "swapped" and len(choices) > 1:
            choices[0]["index"], choices[1]["index"] = 1, 0
        elif fault == "others":
            for choice in choices:
                choice["prompt_logprobs"] = [None] + [{"3": {"logprob": -1.0, "rank": 1}}] * (
                    len(prompts[0]) - 1
                )
        elif fault == "shorter" and "prompt_logprobs" in choices[0]:
            choices[0]["prompt_logprobs"].pop()
        elif fault == "nan":
            [number] = choices[0]["prompt_logprobs"][-1].values()
            number["logprob"] = float("nan")
        elif fault == "abort":
            choices[0]["finish_reason"] = "abort"
        tokens = sum(choice.pop("tokens") for choice in choices)
        usage = {"prompt_tokens": sum(map(len, prompts)), "completion_tokens": tokens}
        # Choices may come in any order: their index counts.
        self.answer({"choices": choices[::-1], "usage": None if fault == "no usage" else usage})

    def choice(self, ids: list[int], payload: dict[str, Any], number: int) -> dict[str, Any]:
        text, ended, tokens = self.write(ids, payload)
        found: dict[str, Any] = {
            "index": number,
            "text": text,
            "tokens": tokens,
            "finish_reason": "stop" if ended else "length",
        }
        if "prompt_logprobs" in payload and "prompt_logprobs" not in self.server.missing:
            found["prompt_logprobs"] = [
                None if place == 0 else self.number(ids[: place + 1]) for place in range(len(ids))
            ]
            if tuple(ids) in self.server.sent and len(ids) > 1:
                for score in found["prompt_logprobs"][1].values():
                    score["logprob"] -= self.server.stale
            self.server.sent.add(tuple(ids))
        if "logprob_token_ids" in payload and self.server.next_tokens is not None:
            asked = {token: logprob([*ids, token]) for token in payload["logprob_token_ids"]}
            table = {f"token_id:{token}": value - self.server.next_tokens for token, value in asked.items()}
            if self.server.lost in asked:
                table[f"token_id:{self.server.lost}"] = -9999.0
            found["logprobs"] = {"top_logprobs": [table]}
        if payload.get("echo"):
            numbers = [None] + [logprob(ids[: place + 1]) for place in range(1, len(ids))]
            best = [
                None if number is None else {"a": number, "b": number * (1.5 - 0.5 * rank(ids[: place + 1]))}
                for place, number in enumerate(numbers)
            ]
            found["logprobs"] = {
                "token_logprobs": [*numbers, -0.5],
                "top_logprobs": [*best, {"a": -0.5}],
                "tokens": ["?"] * (len(ids) + 1),
            }
        return found

    def number(self, ids: list[int]) -> dict[str, Any]:
        return {str(ids[-1]): {"logprob": logprob(ids), "rank": rank(ids), "decoded_token": "?"}}

    def write(self, ids: list[int], payload: dict[str, Any]) -> tuple[str, bool, int]:
        room = payload["max_tokens"]
        if self.server.context is not None:
            room = min(room, self.server.context - len(ids))
        sampled = [*ids, payload.get("seed", 0)] if payload["temperature"] else ids
        given = payload.get("structured_outputs") or {
            name.removeprefix("guided_"): payload[name] for name in CONSTRAINTS if name in payload
        }
        if "response_format" in payload:
            given = {"json": payload["response_format"]}
        if "constraints" not in self.server.missing and given:
            if "choice" in given:
                return given["choice"][_checksum(ids) % len(given["choice"])], True, 1
            return ("42" if "regex" in given else '{"answer": 42}'), True, 1
        text, ended = written(sampled, room)
        if self.server.thinks is not None and "messages" in payload:
            variables = payload.get("chat_template_kwargs", {})
            if variables.get("enable_thinking", True):
                words = [*([] if self.server.thinks == "opened" else ["<think>"]), *THOUGHT, "</think>"]
                answer = written(sampled, 9)[0].split()
                text, ended = " ".join([*words, *answer][:room]), len(words) + len(answer) < room
        for stop in payload.get("stop", ()):
            if stop in text:
                text, ended = text[: text.index(stop)], True
        thinks = self.server.thinks is not None
        return text, ended, len(self.server.ids(text)) if thinks else len(text.split())

    def chat_ids(self, payload: dict[str, Any]) -> list[int]:
        text = "\n".join(f"{turn['role']}: {turn['content']}" for turn in payload["messages"])
        opened = self.server.thinks == "opened" and payload.get("chat_template_kwargs", {}).get(
            "enable_thinking", True
        )
        return [1, *self.server.ids(text), *(self.server.ids("<think>") if opened else [2])]

    def chat(self, payload: dict[str, Any]) -> None:
        if "chat template" in self.server.missing:
            self.reject(400, "As of transformers v4.44, a chat template must be given.")
            return
        ids = self.chat_ids(payload)
        if self.server.context is not None and len(ids) > self.server.context:
            self.reject(400, f"Input length ({len(ids)}) exceeds model's maximum context length.")
            return
        limit = payload.get("max_tokens", payload.get("max_completion_tokens"))
        text, ended, tokens = self.write(ids, {**payload, "max_tokens": limit})
        message: dict[str, str | None] = {"role": "assistant", "content": text}
        if self.server.thinks == "field" and text.startswith("<think>"):
            reasoning, _, answer = text.removeprefix("<think>").partition("</think>")
            message = {"role": "assistant", "content": answer or None, self.server.reasoning_field: reasoning}
        choice = {"index": 0, "message": message, "finish_reason": "stop" if ended else "length"}
        usage = {"prompt_tokens": len(ids), "completion_tokens": tokens}
        self.answer({"choices": [choice], "usage": usage})

    def respond(self, payload: dict[str, Any]) -> None:
        """As OpenAI's server does: a summary of the reasoning, and its tokens."""
        given = {**payload, "messages": payload["input"]}
        ids = self.chat_ids(given)
        text, ended, tokens = self.write(ids, {**given, "max_tokens": payload["max_output_tokens"]})
        reasoning, mark, rest = text.removeprefix("<think>").partition("</think>")
        output: list[dict[str, Any]] = []
        if text.startswith("<think>"):
            parts = [{"type": "summary_text", "text": reasoning}]
            output.append({"type": "reasoning", "id": "r", "summary": parts})
        answer = rest if mark else "" if output else text
        output.append({"type": "message", "content": [{"type": "output_text", "text": answer}]})
        thought = len(self.server.ids(reasoning)) if len(output) > 1 else 0
        usage = {"input_tokens": len(ids), "output_tokens": tokens}
        found: dict[str, Any] = {"status": "completed" if ended else "incomplete", "output": output}
        if not ended:
            found["incomplete_details"] = {"reason": "max_output_tokens"}
        self.answer({**found, "usage": {**usage, "output_tokens_details": {"reasoning_tokens": thought}}})

    def embed(self, payload: dict[str, Any], fault: str | None) -> None:
        data = [
            {"index": number, "embedding": embedding(text)} for number, text in enumerate(payload["input"])
        ]
        if fault == "fewer":
            data.pop()
        elif fault == "zero":
            data[0]["embedding"] = [0.0] * DIMENSION
        elif fault == "shorter":
            data[0]["embedding"] = [1.0]
        self.answer({"data": data[::-1]})

    def answer(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send(200, body[: len(body) // 2] if self.cut else body)

    def reset(self) -> None:
        """Close the connection so that the client's next read or write fails."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        os.close(self.connection.detach())

    def reject(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        error = {"error": {"message": message, "type": "planted", "code": status}}
        self.send(status, json.dumps(error).encode(), headers)

    def send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve as the vLLM command would, with a child process as vLLM has."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    given, _ = parser.parse_known_args()
    mode, death = os.environ.get("STAND_IN", ""), Path(os.environ.get("STAND_IN_DEATH", "/nonexistent"))
    pids = Path(os.environ["STAND_IN_PIDS"])
    if mode == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with pids.open("a") as file:
        file.write(f"{os.getpid()} {child.pid}\n")
    sys.stdout.write("loading weights\n")
    sys.stdout.flush()
    if mode == "dies":
        sys.exit("CUDA out of memory: planted")
    if mode == "hangs":
        time.sleep(600)
    server = StandIn(Path(given.model), host=given.host, port=given.port, key=os.environ["VLLM_API_KEY"])
    server.models = [given.served_model_name]
    server.thread.start()
    while True:
        time.sleep(0.02)
        if mode == "mortal" and death.exists():
            death.unlink()
            sys.stderr.write("engine core died: planted\n")
            sys.stderr.flush()
            os._exit(3)


if __name__ == "__main__":
    main()
