"""Without a Hub, names fail at once instead of after the retries of its client."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

pytest.importorskip("huggingface_hub")


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--tasks", "xnli:sw", "--model", "hf:some/name", "--data", "sample"], "neither downloaded nor"),
        (["--tasks", "xnli:sw", "--model", "baseline:majority", "--data", "hub"], "is not on this machine"),
    ],
    ids=["model", "data"],
)
def test_nothing_is_repeated_without_a_hub(tmp_path: Path, arguments: list[str], reported: str) -> None:
    """The client's retries write a line each; a closed port is one that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{free.getsockname()[1]}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path), "HARNESS_CACHE": str(tmp_path / "own")}
    done = subprocess.run(
        [sys.executable, "-m", "harness", "plan", *arguments],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
        check=False,
    )
    said = " ".join((done.stdout + done.stderr).split())
    assert reported in said
    assert "Retry" not in said
    assert endpoint not in said
