"""``harness fetch`` from a small Hub on loopback, then a run without any connection, each in a process of its own."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("datasets")

from transformers import BertConfig, BertModel

from tests.hf.conftest import sizes, wordpiece

COMMIT = "a" * 40
DATASET = "mteb/tatoeba-bitext-mining"
CARD = """---
configs:
- config_name: swh-eng
  data_files:
  - split: test
    path: swh/test.jsonl
---
"""
PAIRS = [
    ("The cat sleeps.", "Paka analala."),
    ("The dog is near the door.", "Mbwa yuko karibu na mlango."),
    ("I read a book.", "Ninasoma kitabu."),
]


class Hub(ThreadingHTTPServer):
    """Serves files of repositories as the Hub does, as far as `huggingface_hub` asks."""

    daemon_threads = True

    def __init__(self, files: Mapping[str, bytes]) -> None:
        """Serve files by repository and name: ``datasets/org/name/README.md`` or ``org/name/config.json``."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.sent: list[str] = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, format: str, *arguments: Any) -> None:
        """Silent."""

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0].strip("/")
        if path.startswith("api/"):
            kind, _, rest = path.removeprefix("api/").partition("/")
            repository = rest.partition("/tree/")[0].partition("/revision/")[0]
            prefix = f"datasets/{repository}/" if kind == "datasets" else f"{repository}/"
            names = [name.removeprefix(prefix) for name in self.server.files if name.startswith(prefix)]
            tree = [{"type": "file", "path": name, "size": 1, "oid": COMMIT} for name in names]
            info = {"id": repository, "sha": COMMIT, "siblings": [{"rfilename": name} for name in names]}
            content = json.dumps(tree if "/tree/" in path else info).encode()
            self.send(200 if names else 404, content if names else b"", {}, body=body)
            return
        repository, _, rest = path.partition("/resolve/")
        name = f"{repository}/{rest.partition('/')[2]}"
        found = self.server.files.get(name)
        if found is None:
            self.send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}, body=body)
            return
        if body:
            self.server.sent.append(name)
        etag = hashlib.sha1(found, usedforsecurity=False).hexdigest()
        self.send(200, found, {"X-Repo-Commit": COMMIT, "ETag": f'"{etag}"'}, body=body)

    def send(self, status: int, content: bytes, headers: Mapping[str, str], *, body: bool) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A Hub with a data set of one language and a tiny encoder, which has pickled weights too."""
    folder, tokenizer = tmp_path / "made", wordpiece()
    tokenizer.save_pretrained(folder)
    BertModel(BertConfig(**sizes(tokenizer, 64))).save_pretrained(folder)
    (folder / "pytorch_model.bin").write_bytes(b"never downloaded")
    files = {f"org/tiny/{file.name}": file.read_bytes() for file in folder.iterdir()}
    rows = "".join(json.dumps({"sentence1": sw, "sentence2": en}) + "\n" for en, sw in PAIRS)
    files[f"datasets/{DATASET}/README.md"] = CARD.encode()
    files[f"datasets/{DATASET}/swh/test.jsonl"] = rows.encode()
    server = Hub(files)
    yield server
    server.shutdown()
    server.server_close()


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {"HF_HOME": str(folder / "hf"), "HARNESS_CACHE": str(folder / "cache"), "HF_HUB_DISABLE_XET": "1"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HARNESS_DATA"))}
    return subprocess.run(
        [sys.executable, "-m", "harness", *arguments],
        env={**kept, **own, **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def test_what_is_fetched_is_enough_without_a_connection(hub: Hub, tmp_path: Path) -> None:
    wanted = ["--tasks", "tatoeba:sw+de", "--protocol", "frozen"]
    models = ["--model", "hf:org/tiny", "--model", "baseline:majority", "--model", "hf:org/none"]
    models += ["--model", "vllm:org/tiny"]
    rows = tmp_path / "rows.json"
    done = run(tmp_path, "fetch", *wanted, *models, "--json", str(rows), HF_ENDPOINT=hub.url)
    assert done.returncode == 1, f"{done.stdout}\n{done.stderr}"
    found = {row["name"]: row for row in json.loads(rows.read_text())}
    weights = len(hub.files["org/tiny/model.safetensors"])
    assert found["hf:org/tiny"]["bytes"] > weights
    assert found["vllm:org/tiny"]["bytes"] > weights
    assert found["tatoeba test"]["from"] == "hub: sw"
    assert (found["tatoeba test"]["files"], found["baseline:majority"]["files"]) == (1, 0)
    assert "org/none" in found["hf:org/none"]["missing"]
    assert "deu-eng" in done.stdout, "the language without data is not reported"
    assert "org/tiny/pytorch_model.bin" not in hub.sent
    sent = list(hub.sent)
    hub.shutdown()
    hub.server_close()
    evaluated = run(
        tmp_path,
        "eval",
        *wanted,
        "--model",
        "hf:org/tiny",
        "--output",
        "run",
        HF_HUB_OFFLINE="1",
        HF_ENDPOINT=hub.url,
    )
    assert evaluated.returncode == 0, f"{evaluated.stdout}\n{evaluated.stderr}"
    cells = json.loads((tmp_path / "run" / "results.json").read_text())["cells"]
    assert {
        (cell["language"], cell["status"], cell.get("n")) for cell in cells if cell["status"] == "ok"
    } == {("sw", "ok", len(PAIRS))}
    assert hub.sent == sent


def test_without_a_connection_everything_is_missing_and_named(tmp_path: Path) -> None:
    done = run(tmp_path, "fetch", "--tasks", "tatoeba:sw", "--model", "baseline:majority", HF_HUB_OFFLINE="1")
    assert done.returncode == 1
    assert "mteb/tatoeba-bitext-mining" in done.stdout
    assert "HF_HUB_OFFLINE" in done.stdout
