"""The ten tasks of XTREME-R from one command: a Hub and a web on loopback, in their layouts; no real network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("datasets")

from harness.running.session import open_session
from tests.builders import released_data
from tests.harness_hub.web_stand_in import Web
from tests.harness_hub.xtreme_r_downloads import make_downloads
from tests.hub.hub_server import Hub

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
COUNTS = {
    "xnli": 15, "xcopa": 11, "udpos": 38, "wikiann": 48, "xquad": 11, "mlqa": 7, "tydiqa": 9, "mewslix": 11,
    "lareqa": 11, "tatoeba": 41,
}  # fmt: skip


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The servers, and specs that have the checksums of what these serve in the place of the published files."""
    folder = tmp_path_factory.mktemp("xtreme_r")
    made = make_downloads(open_session(), released_data())
    shutil.copytree(ROOT / "task_specs" / "harness_task_specs", folder / "harness_task_specs")
    for spec in (folder / "harness_task_specs").rglob("*.yaml"):
        text = spec.read_text("utf-8")
        for published, own in made.checksums.items():
            text = text.replace(published, own)
        spec.write_text(text, "utf-8")
    hub, web = Hub(made.hub), Web(made.web)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HARNESS_"))}
    yield {
        **kept,
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(folder / "hf"),
        "HF_HUB_DISABLE_XET": "1",
        "HARNESS_WEB_MIRROR": web.url,
        "HARNESS_CACHE": str(folder / "cache"),
    }
    for server in (hub, web):
        server.shutdown()
        server.server_close()


def run(environment: dict[str, str], folder: Path, command: str, *arguments: str) -> str:
    """Run a command on all of the suite; return what it printed."""
    wanted = ["--tasks", "xtreme_r", "--model", "baseline:char-ngram", "--data", "hub"]
    done = subprocess.run(
        [sys.executable, "-m", "harness", command, *wanted, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_all_ten_tasks_run(environment: dict[str, str], tmp_path: Path) -> None:
    """No cell of the suite is skipped in any language; what was fetched is enough to run it without a connection."""
    run(environment, tmp_path, "plan", "--json", "plan.json")
    cells = [cell for cell in read(tmp_path / "plan.json") if cell["protocol"] == "zero_shot_transfer"]
    assert Counter(cell["task"] for cell in cells) == COUNTS
    assert len({cell["language"] for cell in cells}) == 50
    run(environment, tmp_path, "fetch", "--json", "fetched.json")
    fetched = {row["name"]: row["from"] for row in read(tmp_path / "fetched.json")}
    from_web = {
        "udpos test",
        "udpos train",
        "lareqa candidates",
        "mewslix candidates",
        "squad_sentences train",
    }
    assert {name for name in from_web if fetched[name].startswith("web: ")} == from_web

    offline = {**environment, "HF_HUB_OFFLINE": "1", "HARNESS_WEB_MIRROR": "http://127.0.0.1:9"}
    small = ["--recipe", "quick", "--limit", "2", "--train-limit", "30", "--output", "run"]
    run(offline, tmp_path, "eval", *small)
    results = read(tmp_path / "run" / "results.json")
    scored = [cell for cell in results["cells"] if cell["protocol"] == "zero_shot_transfer"]
    assert {cell["status"] for cell in scored} == {"ok"}
    assert Counter(cell["task"] for cell in scored) == COUNTS
    assert 0 < results["suites"][0]["paper"]["value"] < 1
    assert {cell["task"] for cell in scored if cell["data"]["origin"] == "web"} == {"udpos", "lareqa"}
    unseen = {cell["language"] for cell in scored if cell["task"] == "lareqa" and not cell["data"]["pinned"]}
    assert unseen == {"el", "hi", "ru", "th", "tr", "vi"}, "five files of LAReQA are the published ones"


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))
