"""``harness submit --backend ray`` on three simulated nodes, one of which is killed while a job runs on it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from harness import Run
from tests.faults.evaluation import assert_whole, keys, repeated, requests
from tests.ray.conftest import PYTHON, parents, runs
from tests.vllm import stand_in
from tests.vllm.conftest import make_tokenizer

pytestmark = pytest.mark.thorough

ASKED = ("--tasks", "xnli", "--languages", "de,en,hi,sw,tr,zh", "--data", "sample")
SLOW = Path(__file__).parents[1] / "cli" / "slow_adapter.py"
PATIENCE = 90.0
Found = TypeVar("Found")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The plugin with the model ``slow:*``, installed for every process that the tests start."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(SLOW, folder)
    information = folder / "slow_adapter-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-adapter\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[harness]\nslow_adapter = slow_adapter\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        patch.setenv("STAND_IN_PIDS", str(folder / "pids"))
        yield folder


@pytest.fixture(scope="module")
def cluster(site: Path, start_cluster: Callable[[Sequence[int]], Any]) -> Any:
    return start_cluster([1, 1, 1])


class Command:
    """``harness ARGUMENTS`` as a child, with its output in a file; ended with the test that started it."""

    def __init__(self, arguments: Sequence[object], log: Path, environment: Mapping[str, str]) -> None:
        self._log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [PYTHON, "-m", "harness", *map(str, arguments)],
                stdout=file,
                stderr=file,
                env={**os.environ, **environment},
            )

    def output(self) -> str:
        """What it printed, once it has ended, on one line."""
        self.process.wait(PATIENCE)
        return " ".join(self._log.read_text(encoding="utf-8").split())

    @property
    def status(self) -> int | None:
        return self.process.poll()


Start = Callable[..., Command]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Command] = []

    def start_(*arguments: object, **environment: str) -> Command:
        started.append(Command(arguments, tmp_path / f"output-{len(started)}", environment))
        return started[-1]

    yield start_
    for command in started:
        command.process.kill()
        command.process.wait()


def wait_for(find: Callable[[], Found | None], what: str, command: Command) -> Found:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = find()
        if found is not None:
            return found
        assert command.status is None, f"it ended before {what}: {command.output()}"
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {PATIENCE:g} s")


def job_names(fleet: Path) -> list[str]:
    return sorted(folder.name for folder in (fleet / "jobs").glob("*"))


def pid_of(fleet: Path, job: str) -> int | None:
    file = fleet / "jobs" / job / "status.json"
    try:
        return int(json.loads(file.read_text())["pid"])
    except (OSError, ValueError):
        return None


def node_of(pid: int, nodes: Sequence[Any]) -> Any | None:
    """The simulated node on which a process runs."""
    above = set(parents(pid))
    for node in nodes:
        if {info.process.pid for info in node.all_processes["raylet"]} & above:
            return node
    return None


def test_a_killed_node_changes_nothing(cluster: Any, start: Start, tmp_path: Path) -> None:
    reference = start("eval", *ASKED, "--model", "slow:a", "--output", tmp_path / "reference")
    assert "Run folder" in reference.output()
    fleet = tmp_path / "fleet"
    models = ("--model", "slow:a", "--model", "slow:b")
    submit = start(
        "submit", *ASKED, *models, "--backend", "ray", "--output", fleet, RAY_ADDRESS=cluster.address
    )
    others = [node for node in cluster.list_all_nodes() if node is not cluster.head_node]

    def working() -> tuple[str, int, Any] | None:
        """A job in the middle of its work that is not on the head node: the driver would lose that one's."""
        for job in job_names(fleet):
            pid = pid_of(fleet, job)
            node = None if pid is None or not runs(pid) else node_of(pid, others)
            if node is not None and pid is not None and any(keys(fleet / "runs" / job)):
                return job, pid, node
        return None

    job, pid, node = wait_for(working, "a job has answers", submit)
    cluster.remove_node(node, allow_graceful=False)
    wait_for(lambda: None if runs(pid) else True, "the job is gone with its node", submit)
    run = fleet / "runs" / job
    kept = len(list(keys(run)))
    output = submit.output()
    assert submit.status == 0, output
    assert f"{job}: lost: Ray: " in output
    for name in job_names(fleet):
        assert_whole(fleet / "runs" / name, tmp_path / "reference")
        assert repeated(fleet / "runs" / name) == 0
    counts = requests(run)
    assert 0 < counts["reused"] == kept < counts["planned"]
    assert counts["asked"] == counts["planned"] - kept


def test_jobs_end_with_the_command_that_started_them(cluster: Any, start: Start, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    given = (*ASKED, "--model", "slow:a", "--backend", "ray", "--output", fleet)
    submit = start("submit", *given, RAY_ADDRESS=cluster.address)

    def working() -> int | None:
        return next((pid_of(fleet, job) for job in job_names(fleet) if any(keys(fleet / "runs" / job))), None)

    pid = wait_for(working, "the job has answers", submit)
    submit.process.kill()
    deadline = time.monotonic() + PATIENCE
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not runs(pid)


def test_a_folder_that_only_the_driver_sees(
    cluster: Any, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``/proc/self/cwd`` is another folder in every process."""
    monkeypatch.chdir(tmp_path)
    submit = start(
        *("submit", *ASKED, "--model", "slow:a", "--backend", "ray"),
        *("--output", "/proc/self/cwd/fleet"),
        RAY_ADDRESS=cluster.address,
    )
    assert re.search("does not see '/proc/self/cwd/fleet/[^']+': No such file or directory", submit.output())
    assert submit.status == 1
    assert not (tmp_path / "fleet" / "runs").exists()


@pytest.fixture
def served(tmp_path: Path) -> tuple[object, ...]:
    """Options with a model that a stand-in for vLLM serves."""
    folder = tmp_path / "decoder"
    make_tokenizer(bos=False).save_pretrained(folder)
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2}')
    program = tmp_path / "python"
    script = Path(stand_in.__file__)
    program.write_text(f'#!/bin/sh\nshift 2\nexec "{PYTHON}" "{script}" "$@"\n')
    program.chmod(0o755)
    return ("--model", f"vllm:{folder}", "-o", f"python={program}", "-o", f"tokenizer={folder}")


def key_of(pid: int) -> str:
    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next(one.partition(b"=")[2].decode() for one in variables if one.startswith(b"VLLM_API_KEY="))


def test_jobs_share_servers(
    cluster: Any, site: Path, served: tuple[object, ...], start: Start, tmp_path: Path
) -> None:
    asked = ("--tasks", "xcopa", "--languages", "sw,tr", "--data", "sample", *served)
    pids = site / "pids"

    def started() -> list[int] | None:
        found = [int(word) for word in pids.read_text().split()] if pids.exists() else []
        return found[::2] if len(found) == 4 else None

    given = (
        "--jobs",
        2,
        "--backend",
        "ray",
        "--backend-option",
        "replicas=2",
        "--output",
        tmp_path / "fleet",
    )
    submit = start("submit", *asked, *given, RAY_ADDRESS=cluster.address)
    servers = wait_for(started, "two servers run", submit)
    keys_found = {key_of(pid) for pid in servers}
    assert "Every cell of 1 model has a score." in submit.output()
    assert not any(runs(pid) for pid in servers)
    [key] = keys_found
    files = [file.read_bytes() for file in (tmp_path / "fleet").rglob("*") if file.is_file()]
    assert len(files) > 10
    assert not any(key.encode() in content for content in files)
    reference = start("eval", *asked, "--output", tmp_path / "reference")
    assert reference.output()
    [merged] = (tmp_path / "fleet" / "merged").iterdir()
    assert scores(merged) == scores(tmp_path / "reference")


def scores(run: Path) -> dict[tuple[str, str], Any]:
    return {(cell.task, cell.language): cell.metrics for cell in Run(run).cells}


def test_servers_that_do_not_start(
    cluster: Any, served: tuple[object, ...], start: Start, tmp_path: Path
) -> None:
    asked = ("--tasks", "xcopa", "--languages", "sw", "--data", "sample", *served[:2])
    given = ("--backend", "ray", "--backend-option", "replicas=2", "--output", tmp_path / "fleet")
    submit = start("submit", *asked, *given, RAY_ADDRESS=cluster.address)
    assert "No server for 'vllm:" in submit.output()
    assert "has no vllm" in submit.output()
    assert submit.status == 1
