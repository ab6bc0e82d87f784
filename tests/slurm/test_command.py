"""The command of a job: its status, its signals, and its continuation by submitit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness import HarnessError

pytest.importorskip("submitit")
from submitit import LocalExecutor

from harness_slurm.runner import ResumableCommand

LONG = """
echo started
[ -e again ] && exit 0
[ -e endless ] || touch again
trap 'echo interrupted; exit 130' TERM
while :; do sleep 0.05; done
"""


def make_command(folder: Path, script: str) -> ResumableCommand:
    """Return a command that works in a folder."""
    folder.mkdir(exist_ok=True)
    return ResumableCommand(("sh", "-c", f"cd {folder}; {script}"), str(folder), grace=30)


def status(folder: Path) -> object:
    """Return what the job wrote down."""
    return json.loads((folder / "slurm-status.json").read_text())["status"]


@pytest.mark.parametrize(
    ("script", "ended"), [("exit 0", 0), ("exit 3", 3), ("exit 130", 130), ("kill -9 $$", -9)]
)
def test_the_status_is_kept(tmp_path: Path, script: str, ended: int) -> None:
    command = make_command(tmp_path, script)
    if ended:  # so that Slurm starts no job that needs this one
        with pytest.raises(HarnessError, match=f"status {ended};"):
            command()
    else:
        assert command() == 0
    assert status(tmp_path) == ended


def test_the_warning_of_slurm_does_not_end_the_command(tmp_path: Path) -> None:
    assert make_command(tmp_path, "kill -USR2 $$; kill -USR1 $$; echo alive")() == 0
    assert (tmp_path / "log.txt").read_text() == "alive\n"


@pytest.mark.thorough
def test_out_of_time(tmp_path: Path) -> None:
    executor = LocalExecutor(tmp_path / "submitit", max_num_timeout=1)
    executor.update_parameters(timeout_min=15 / 60, signal_delay_s=11)
    once, ever = tmp_path / "once", tmp_path / "ever"
    commands = [make_command(once, LONG), make_command(ever, LONG)]
    (ever / "endless").touch()
    jobs = [executor.submit(command) for command in commands]
    assert jobs[0].result() == 0
    assert status(once) == 0
    assert (once / "log.txt").read_text() == "started\ninterrupted\nstarted\n"
    assert "timed-out too many times" in str(jobs[1].exception())
    assert status(ever) is None
    assert (ever / "log.txt").read_text() == "started\ninterrupted\n" * 2
