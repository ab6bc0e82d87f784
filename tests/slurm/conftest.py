"""Two clusters: one that runs scripts on this machine, and a real Slurm of one node where it is installed."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FAKE = Path(__file__).with_name("fake_slurm.py")
COMMANDS = ("sbatch", "srun", "scancel", "squeue", "scontrol")
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
"""


@pytest.fixture(params=["fake", "real"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Slurm's commands on the path; the name of the cluster."""
    start = {"fake": _fake, "real": _real}[request.param]
    with monkeypatch.context() as patch:
        yield from start(tmp_path / "cluster", patch)


def write_commands(folder: Path, names: tuple[str, ...], text: Callable[[str], str]) -> None:
    """Write shell scripts."""
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(f"#!/bin/sh\n{text(name)}\n", encoding="utf-8")
        (folder / name).chmod(0o755)


def _fake(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[str]:
    write_commands(folder / "bin", COMMANDS, lambda name: f'exec "{sys.executable}" "{FAKE}" {name} "$@"')
    (folder / "states").mkdir()
    patch.setenv("FAKE_SLURM", str(folder / "states"))
    patch.setenv("PATH", str(folder / "bin"), prepend=os.pathsep)
    yield "fake"
    queue = subprocess.run(["squeue"], capture_output=True, text=True, check=True).stdout.splitlines()
    if queue:
        subprocess.run(["scancel", *(line.split()[0] for line in queue)], check=True)


def _real(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[str]:
    path = f"{os.environ['PATH']}:/usr/sbin"
    programs = [shutil.which(name, path=path) for name in ("slurmctld", "slurmd")]
    if None in programs:
        pytest.skip("no Slurm is installed: apt-get install slurmctld slurmd slurm-client")
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    host = socket.gethostname().partition(".")[0]
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        ports = (one.getsockname()[1], other.getsockname()[1])
    file = folder / "slurm.conf"
    file.write_text(
        CONFIGURATION.format(host=host, ports=ports, user=getpass.getuser(), folder=folder), encoding="utf-8"
    )
    patch.setenv("SLURM_CONF", str(file))
    daemons = [
        subprocess.Popen([str(program), "-D"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for program in programs
    ]
    try:
        command = ["sinfo", "--noheader", "--format=%T"]
        for _ in range(300):
            found = subprocess.run(command, capture_output=True, text=True, check=False)
            if found.stdout.strip() == "idle":
                break
            time.sleep(0.1)
        yield "real"
        subprocess.run(["scancel", "--user", getpass.getuser()], check=False)
    finally:
        for daemon in reversed(daemons):
            daemon.send_signal(signal.SIGTERM)
            daemon.wait()
