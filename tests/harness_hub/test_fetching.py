"""``harness fetch`` from a small Hub on loopback, then a run without any connection, each in a process of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("datasets")

from transformers import BertConfig, BertModel

from tests.hf.conftest import sizes, wordpiece
from tests.hub.hub_server import Hub

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
    server.close()


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


@pytest.mark.thorough
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
    hub.close()
    command = ["eval", *wanted, "--model", "hf:org/tiny", "--output", "run"]
    evaluated = run(tmp_path, *command, HF_HUB_OFFLINE="1", HF_ENDPOINT=hub.url)
    assert evaluated.returncode == 0, f"{evaluated.stdout}\n{evaluated.stderr}"
    cells = json.loads((tmp_path / "run" / "results.json").read_text())["cells"]
    assert {(cell["language"], cell.get("n")) for cell in cells if cell["status"] == "ok"} == {
        ("sw", len(PAIRS))
    }
    assert hub.sent == sent


def test_without_a_connection_everything_is_missing_and_named(tmp_path: Path) -> None:
    done = run(tmp_path, "fetch", "--tasks", "tatoeba:sw", "--model", "baseline:majority", HF_HUB_OFFLINE="1")
    assert done.returncode == 1
    assert "mteb/tatoeba-bitext-mining" in done.stdout
    assert "HF_HUB_OFFLINE" in done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("model", "data", "reported"),
    [
        ("hf:some/name", "sample", "neither downloaded nor"),
        ("baseline:majority", "hub", "is not on this machine"),
    ],
)
def test_nothing_is_repeated_without_a_hub(tmp_path: Path, model: str, data: str, reported: str) -> None:
    """The client's retries write a line each; a closed port is one that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{free.getsockname()[1]}"
    selection = ("--tasks", "xnli:sw", "--model", model, "--data", data)
    done = run(tmp_path, "plan", *selection, HF_ENDPOINT=endpoint)
    printed = " ".join((done.stdout + done.stderr).split())
    assert reported in printed
    assert "Retry" not in printed
    assert endpoint not in printed
