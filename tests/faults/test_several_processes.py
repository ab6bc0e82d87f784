"""Runs on several processes of this machine, started, killed and stopped as a user would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.storage.run_folder import Run

from .evaluation import answers_by_log, plain_cells, requests

pytestmark = pytest.mark.thorough

pytest.importorskip("accelerate")

HARNESS = (sys.executable, "-m", "harness")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
ROOT = Path(__file__).resolve().parents[2]
PLAIN = (
    *("eval", "--tasks", "xnli:de+hi,udpos:de,tatoeba:de", "--model", "baseline:char-ngram"),
    *("--data", "sample", "--recipe", "quick", "--train-limit", "30", "--limit", "6"),
)
FLAKY = ("eval", "--tasks", "xnli:de+hi", "--model", "flaky:it", "--data", "sample")
PATIENCE = 120
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(
    tmp_path: Path, install_plugin: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Start]:
    """Start a command in ``tmp_path``, with the adapter ``flaky``; what is left of it in the end is killed."""
    source = Path(__file__).with_name("flaky_adapter.py").read_text(encoding="utf-8")
    folders = [ROOT, *(ROOT / name for name in ("plugins", "model_adapters", "task_specs"))]
    paths = [str(install_plugin("flaky_adapter", source)), *map(str, folders)]
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    started: list[subprocess.Popen[str]] = []

    def begin(*command: str, **environment: str) -> subprocess.Popen[str]:
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "MARK": str(tmp_path), **environment}
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield begin
    for number in _left(tmp_path):
        os.kill(number, signal.SIGKILL)
    for process in started:
        process.communicate()


def _left(mark: Path) -> list[int]:
    """Return the processes of a test that still run: the test's environment variables identify them."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            running = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
        except OSError:
            continue
        if running and f"MARK={mark}".encode() in variables:
            found.append(int(folder.name))
    return found


def _ended(process: subprocess.Popen[str], status: int = 0) -> str:
    """Return what a command that ended with this status wrote to stderr."""
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == status, err
    return err


def _wait_for(condition: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def _content(path: Path) -> tuple[Any, Any, Any]:
    """Return scores, the bytes of all records, and the counts of requests."""
    records = {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*.parquet")}
    return plain_cells(path), records, requests(path)


def test_two_processes_do_what_one_does(start: Start, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    _ended(start(*HARNESS, *PLAIN, "--output", "one"))
    (tmp_path / "cache").rename(tmp_path / "cache-of-one")
    err = _ended(start(*HARNESS, *PLAIN, "--output", "two", "--num-processes", "2"))
    assert "Process 1" not in err
    assert _content(two) == _content(one)
    assert Run(two).results.run.processes == 2
    assert sum(answers_by_log(two)) == sum(answers_by_log(one))
    assert _left(tmp_path) == []


@pytest.mark.parametrize("given", [("--precision", "6"), ("--budget", "500")])
def test_two_processes_stop_where_one_does(start: Start, tmp_path: Path, given: tuple[str, str]) -> None:
    for code in ("de", "es"):
        labels = ("contradiction", "neutral", "entailment")
        lines = [f"Sentence {n}.\tClaim {n} of {code}.\t{labels[n * n % 7 % 3]}\n" for n in range(600)]
        (tmp_path / "data" / "xnli").mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / "xnli" / f"test-{code}.tsv").write_text("".join(lines), encoding="utf-8")
    command = (*HARNESS, "eval", "--tasks", "xnli:de+es", "--model", "flaky:it", "--data", "data", *given)
    for name, count in (("one", "1"), ("two", "2")):
        _ended(start(*command, "--output", name, "--num-processes", count))
    assert _content(tmp_path / "two") == _content(tmp_path / "one")
    assert all(len(cell.looks) > 1 for cell in Run(tmp_path / "two").cells)
    assert all(answers_by_log(tmp_path / "two"))


def test_one_process_is_killed_alone_and_one_goes_on(start: Start, tmp_path: Path) -> None:
    run, whole = tmp_path / "run", tmp_path / "whole"
    killed = start(*HARNESS, *FLAKY, "--output", "run", "--num-processes", "2", FLAKY_KILL="3")
    _wait_for((run / "journal" / "1.log").exists)
    _ended(killed, 1)
    assert _left(tmp_path) == []
    kept = answers_by_log(run)
    assert all(kept)
    _ended(start(*HARNESS, "eval", "--resume", "run"))
    _ended(start(*HARNESS, *FLAKY, "--output", "whole"))
    assert _content(run)[:2] == _content(whole)[:2]
    assert sum(answers_by_log(run)) == sum(answers_by_log(whole))
    assert requests(run)["asked"] == requests(run)["planned"] - sum(kept)


def test_the_command_is_killed_and_nothing_goes_on(start: Start, tmp_path: Path) -> None:
    command = start(*HARNESS, *FLAKY, "--output", "run", "--num-processes", "2", FLAKY_SLEEP="60")
    _wait_for(lambda: len(answers_by_log(tmp_path / "run")) == 2)
    assert len(_left(tmp_path)) >= 4
    command.kill()
    command.wait()
    until = time.monotonic() + 40  # less than a block takes
    while _left(tmp_path) and time.monotonic() < until:
        time.sleep(0.1)
    assert _left(tmp_path) == []


def test_ctrl_c_ends_all_in_order(start: Start, tmp_path: Path) -> None:
    command = start(*HARNESS, *FLAKY, "--output", "run", "--num-processes", "2", FLAKY_SLEEP="0.5")
    _wait_for(lambda: sum(answers_by_log(tmp_path / "run")))
    command.send_signal(signal.SIGINT)
    err = _ended(command, 130)
    assert "Stopping after what is under way. Press Ctrl-C again to stop at once." in err
    assert "harness eval --resume run\n" in err
    assert "Traceback" not in err
    assert _left(tmp_path) == []
    assert {cell.status for cell in Run(tmp_path / "run").cells} <= {"ok", "skipped"}


LAUNCH = (sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2")
REJECTED = {
    "accelerate starts one": ((*LAUNCH, "-m", "harness", *PLAIN), 1, "'harness eval --num-processes 2 ...'"),
    "another number than torchrun's": (
        (*TORCHRUN, "-m", "harness", *FLAKY, "--num-processes", "3"),
        1,
        "--num-processes asks for 3 processes, but this launcher started 2.",
    ),
    "wrong usage": (
        (*HARNESS, *PLAIN, "--tasks", "nothing", "--num-processes", "2"),
        2,
        "nothing",
    ),
}


@pytest.mark.parametrize(("command", "status", "message"), REJECTED.values(), ids=REJECTED)
def test_a_command_that_cannot_be_started_is_rejected_before_it_writes(
    start: Start, tmp_path: Path, command: tuple[str, ...], status: int, message: str
) -> None:
    err = _ended(start(*command, "--output", "run", ACCELERATE_USE_CPU="true"), status)
    [error] = {line for line in err.splitlines() if line.startswith("Error: ")}
    assert message in error
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_torchrun_starts_them_too(start: Start, tmp_path: Path) -> None:
    _ended(
        start(*TORCHRUN, "-m", "harness", *FLAKY, "--output", "run", ACCELERATE_USE_CPU="true"),
    )
    _ended(start(*HARNESS, *FLAKY, "--output", "one"))
    assert _content(tmp_path / "run") == _content(tmp_path / "one")
    assert all(answers_by_log(tmp_path / "run"))


@pytest.mark.slow
def test_a_failed_cell_fails_in_all_and_the_status_passes_through(start: Start, tmp_path: Path) -> None:
    command = (*HARNESS, *FLAKY, "--output", "run", "--num-processes", "2")
    assert "xnli:hi failed: " in _ended(start(*command, FLAKY="1"), 1)
    statuses = {cell.language: cell.status for cell in Run(tmp_path / "run").cells}
    assert statuses == {"de": "ok", "hi": "failed"}
    _ended(start(*HARNESS, "eval", "--resume", "run", "--num-processes", "2"))
    assert {cell.status for cell in Run(tmp_path / "run").cells} == {"ok"}


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["first", "later"])
def test_two_processes_go_on_with_what_one_began(start: Start, tmp_path: Path, moment: str) -> None:
    first = start(*HARNESS, *FLAKY, "--output", "run", FLAKY_SLEEP="0.2")
    least = 0 if moment == "first" else 12
    _wait_for(lambda: sum(answers_by_log(tmp_path / "run")) > least)
    first.kill()
    first.wait()
    kept = sum(answers_by_log(tmp_path / "run"))
    _ended(start(*HARNESS, "eval", "--resume", "run", "--num-processes", "2"))
    counts = requests(tmp_path / "run")
    assert counts["asked"] == counts["planned"] - kept
