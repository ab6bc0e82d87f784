"""Runs logged to the real Weights & Biases (offline), MLflow and trackio, and read back from what they stored.

Needs an environment that has them: ``make setup-peers``, or the one that `HARNESS_TEST_PEERS` names.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.thorough

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PEERS = Path(os.environ.get("HARNESS_TEST_PEERS") or ROOT / ".venv-peers")
NO_NETWORK = """\
import socket
connect = socket.socket.connect
def guarded(self, address):
    if self.family != socket.AF_UNIX and not str(address[0]).startswith(("127.", "::1", "localhost")):
        raise SystemExit(f"tried to connect to {address}")
    connect(self, address)
socket.socket.connect = guarded
"""
TRACKERS = ("mlflow", "trackio", "wandb")


@dataclass(frozen=True)
class Peer:
    """A folder of its own, and the Python that has the trackers."""

    folder: Path

    def run(self, *arguments: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
        """Run the Python of the peers in the folder."""
        source = [
            str(self.folder / "site"),
            *(str(ROOT / name) for name in ("", "plugins", "model_adapters", "task_specs")),
        ]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "PYTHONPATH": os.pathsep.join(source),
            "HARNESS_CACHE": str(self.folder / "cache"),
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "WANDB_MODE": "offline",
            "MLFLOW_TRACKING_URI": f"sqlite:///{self.folder}/mlflow.db",
            "TRACKIO_DIR": str(self.folder / "trackio"),
        }
        done = subprocess.run(
            [str(PEERS / "bin" / "python"), *arguments],
            capture_output=True,
            encoding="utf-8",
            timeout=300,
            check=False,
            cwd=self.folder,
            env=environment,
        )
        assert (done.returncode != 0) is fails, done.stderr[-3000:]
        return done

    def read(self, tracker: str) -> Any:
        """Return what a tracker has of the run."""
        return json.loads(self.run(str(HERE / "read_back.py"), tracker).stdout.splitlines()[-1])


@pytest.fixture
def peer(tmp_path: Path) -> Peer:
    """Return an environment with all trackers, none of which reaches a network."""
    missing = [name for name in TRACKERS if not list(PEERS.glob(f"lib/python3*/site-packages/{name}"))]
    if missing:
        pytest.skip(
            f"no {', '.join(missing)} in {PEERS.name}: run make setup-peers, or set HARNESS_TEST_PEERS"
        )
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(NO_NETWORK, encoding="utf-8")
    return Peer(tmp_path)


@pytest.mark.parametrize("tracker", TRACKERS)
def test_a_tracker_has_what_the_run_folder_has(peer: Peer, tracker: str) -> None:
    command = (
        "eval",
        "--tasks",
        "xnli:en+sw,udpos:de",
        "--model",
        "baseline:char-ngram",
        "--recipe",
        "quick",
    )
    done = peer.run("-m", "harness", *command, "--data", "sample", "--output", "run", "--log", tracker)
    assert f"The run is logged to {tracker}: " in done.stderr
    stored = json.loads((peer.folder / "run" / "results.json").read_text(encoding="utf-8"))
    expected: dict[str, float] = {}
    for row in stored["tasks"]:
        if row["headline"]:
            expected[f"{row['task']}/mean/{row['metric']}"] = row["value"]
            for cell in stored["cells"]:
                if cell["task"] == row["task"]:
                    name, value = (
                        f"{cell['task']}/{cell['language']}/{row['metric']}",
                        cell["metrics"][row["metric"]],
                    )
                    expected |= {
                        name: value["value"],
                        f"{name}_low": value["ci"][0],
                        f"{name}_high": value["ci"][1],
                    }
    found = peer.read(tracker)
    assert {name: found["metrics"].get(name) for name in expected} == pytest.approx(expected)
    assert found["name"] == "run"
    assert found["config"]["model"] == "baseline:char-ngram"
    assert found["config"]["tasks"]["udpos"]["data"] == {
        "de": next(cell["data"]["digest"] for cell in stored["cells"] if cell["language"] == "de")
    }
    assert found["results"] == stored
    assert found["rows"] == sum(len(cell["metrics"]) for cell in stored["cells"])
    assert found.get("finished", True)
    manifest = json.loads((peer.folder / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["trackers"] == {tracker: found["id"]}

    peer.run("-m", "harness", "eval", "--resume", "run")
    again = peer.read(tracker)
    assert again["id"] == found["id"]
    cells = {name: count for name, count in again["counts"].items() if "/mean/" not in name}
    assert set(cells.values()) == {1}, "no cell is logged twice"
    if tracker == "wandb":
        assert again["host"] == ""


def test_a_missing_key_is_an_error_and_not_a_question(peer: Peer) -> None:
    command = (
        "eval",
        "--tasks",
        "xnli:sw",
        "--model",
        "baseline:majority",
        "--data",
        "sample",
        "--output",
        "run",
    )
    online = "import os, sys; os.environ['WANDB_MODE'] = 'online'; from harness.cli.main import run; run()"
    done = peer.run("-c", online, *command, "--log", "wandb", fails=True)
    assert "The tracker 'wandb' cannot be opened: " in done.stderr
    assert "login" in done.stderr
    assert not (peer.folder / "run" / "manifest.json").exists()
