"""A real Ray on this machine, and jobs that are shell scripts."""

from __future__ import annotations

import _socket
import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.registry import FleetJob, JobState

OWN = {"include_dashboard": False, "object_store_memory": 100 * 2**20}
MakeJob = Callable[..., FleetJob]


@pytest.fixture(scope="session", autouse=True)
def _this_machine(_no_network: None) -> Iterator[None]:
    """Let connections to this machine's own address pass, at which a cluster is even when it is alone."""
    ray = pytest.importorskip("ray", reason="ray is not installed")
    own = ray.util.get_node_ip_address()
    guarded = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        plain = _socket.socket.connect if address[0] == own else guarded
        plain(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.delenv("RAY_ADDRESS", raising=False)
        yield


@pytest.fixture(scope="module")
def start_cluster() -> Iterator[Callable[[Sequence[int]], Any]]:
    """A function that starts a cluster of simulated nodes with so many CPUs each; it is ended after the module."""
    cluster_utils = pytest.importorskip("ray.cluster_utils", reason="ray is not installed")
    started: list[Any] = []

    def start(cpus: Sequence[int]) -> Any:
        cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": cpus[0], **OWN})
        started.append(cluster)
        for count in cpus[1:]:
            cluster.add_node(num_cpus=count, **OWN)
        return cluster

    yield start
    for cluster in started:
        cluster.shutdown()


@pytest.fixture
def make_job(tmp_path: Path) -> MakeJob:
    """A function that returns a job: a name, a shell script that runs in the job's folder, and other fields."""

    def make(name: str, script: str, **fields: Any) -> FleetJob:
        folder = tmp_path / "fleet" / name
        folder.mkdir(parents=True)
        command = ("sh", "-c", f"cd '{folder}' && {script}")
        return FleetJob(name=name, command=command, folder=folder, model="baseline:random", **fields)

    return make


class Diary:
    """Takes what a backend reports."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, JobState]] = []

    def __call__(self, name: str, state: JobState) -> None:
        self.entries.append((name, state))

    def of(self, name: str) -> list[str]:
        return [str(state) for one, state in self.entries if one == name]


@pytest.fixture
def diary() -> Diary:
    return Diary()


def runs(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def parents(pid: int) -> Iterator[int]:
    """The processes above one."""
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        yield pid


PYTHON = sys.executable
