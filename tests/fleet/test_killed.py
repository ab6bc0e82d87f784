"""A job of a real fleet is killed: the others end, and a retry asks only what was not answered."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_fleet.folder import Fleet

pytestmark = pytest.mark.thorough

Cli = Callable[..., tuple[int, str, str]]
SLOW = Path(__file__).parents[1] / "cli" / "slow_adapter.py"
ASKED = ("--tasks", "xcopa", "--data", "sample")
FLEET = Path("fleet")
PATIENCE = 120.0


@pytest.fixture
def submitted(
    cli: Cli, install_plugin: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[subprocess.Popen[str]]:
    """A fleet of two jobs at once that runs in processes of its own."""
    folder = install_plugin("slow_adapter", SLOW.read_text(encoding="utf-8"))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    command = (sys.executable, "-m", "harness", "submit", "--model", "slow:x", *ASKED, "--jobs", "2")
    process = subprocess.Popen(
        [*command, "-b", "workers=2", "--output", str(FLEET)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    yield process
    if process.poll() is None:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def _until(found: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < end
        time.sleep(0.02)


def _cells(job: str) -> int:
    return len(list((FLEET / "runs" / job / "cells").glob("*.json")))


def _pid(job: str) -> int:
    return int(json.loads((FLEET / "jobs" / job / "status.json").read_text(encoding="utf-8"))["pid"])


def _assert_undisturbed(cli: Cli, scores: Callable[[Path], Any], answers: Callable[[Path], int]) -> None:
    fleet = Fleet(FLEET)
    [model] = fleet.file.models
    assert cli("eval", "--model", "slow:x", *ASKED, "--output", "single")[0] == 0
    assert scores(fleet.result(model)) == scores(Path("single"))
    assert sum(answers(fleet.run(job.name)) for job in fleet.file.jobs) == answers(Path("single"))


def test_a_killed_job_is_run_again(
    submitted: subprocess.Popen[str], cli: Cli, scores: Callable[[Path], Any], answers: Callable[[Path], int]
) -> None:
    first, second = "001-slow-x-1-of-2", "001-slow-x-2-of-2"
    _until(lambda: _cells(first) > 0)
    os.kill(_pid(first), signal.SIGKILL)
    out, _ = submitted.communicate(timeout=PATIENCE)
    assert submitted.returncode == 1, out
    done = _cells(first)
    assert 0 < done < Fleet(FLEET).file.jobs[0].cells
    assert cli("submit", "status", FLEET, "--json", "rows.json")[0] == 0
    [row] = json.loads(Path("rows.json").read_text(encoding="utf-8"))
    assert row["jobs"] == {first: "lost", second: "done"}
    assert cli("submit", "collect", FLEET, "--check")[0] == 1
    status, _, err = cli("submit", "retry", FLEET)
    assert status == 0, err
    assert second not in err
    _assert_undisturbed(cli, scores, answers)


def test_an_interrupted_fleet_continues(
    submitted: subprocess.Popen[str], cli: Cli, scores: Callable[[Path], Any], answers: Callable[[Path], int]
) -> None:
    _until(lambda: _cells("001-slow-x-1-of-2") > 0)
    status, out, _ = cli("submit", "retry", FLEET)
    assert status == 0
    assert "No job is left to run" in out
    submitted.send_signal(signal.SIGINT)
    out, _ = submitted.communicate(timeout=PATIENCE)
    assert submitted.returncode == 130, out
    assert "harness submit retry" in out
    assert cli("submit", "retry", FLEET)[0] == 0
    _assert_undisturbed(cli, scores, answers)


def test_jobs_outlive_the_command_that_started_them(
    submitted: subprocess.Popen[str], cli: Cli, scores: Callable[[Path], Any], answers: Callable[[Path], int]
) -> None:
    _until(lambda: _cells("001-slow-x-1-of-2") > 0)
    submitted.kill()
    submitted.communicate(timeout=PATIENCE)
    fleet = Fleet(FLEET)
    _until(lambda: all(_cells(job.name) == job.cells for job in fleet.file.jobs))
    _until(lambda: not any((fleet.folder(job.name) / "job.lock").exists() for job in fleet.file.jobs))
    assert cli("submit", "collect", FLEET)[0] == 0
    _assert_undisturbed(cli, scores, answers)
