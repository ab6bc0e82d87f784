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


def _ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, err = process.communicate(timeout=PATIENCE)
    return process.returncode, err


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
    status, err = _ended(start(*HARNESS, *PLAIN, "--output", "one"))
    assert status == 0, err
    (tmp_path / "cache").rename(tmp_path / "cache-of-one")
    status, err = _ended(start(*HARNESS, *PLAIN, "--output", "two", "--num-processes", "2"))
    assert status == 0, err
    assert "Process 1" not in err
    assert _content(tmp_path / "two") == _content(tmp_path / "one")
    assert Run(tmp_path / "two").results.run.processes == 2
    assert sorted(answers_by_log(tmp_path / "two")) >= [0, 0]
    assert sum(answers_by_log(tmp_path / "two")) == sum(answers_by_log(tmp_path / "one"))
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
        status, err = _ended(start(*command, "--output", name, "--num-processes", count))
        assert status == 0, err
    assert _content(tmp_path / "two") == _content(tmp_path / "one")
    assert all(len(cell.looks) > 1 for cell in Run(tmp_path / "two").cells)
    assert all(answers_by_log(tmp_path / "two"))


def test_one_process_is_killed_alone_and_one_goes_on(start: Start, tmp_path: Path) -> None:
    command = (*HARNESS, *FLAKY, "--output", "run", "--num-processes", "2")
    killed = start(*command, FLAKY_KILL="3")
    _wait_for((tmp_path / "run" / "journal" / "1.log").exists)
    status, err = _ended(killed)
    assert status == 1, err
    assert _left(tmp_path) == []
    kept = answers_by_log(tmp_path / "run")
    assert all(kept)
    status, err = _ended(start(*HARNESS, "eval", "--resume", "run"))
    assert status == 0, err
    status, err = _ended(start(*HARNESS, *FLAKY, "--output", "undisturbed"))
    assert status == 0, err
    cells, records, counts = _content(tmp_path / "run")
    assert (cells, records) == _content(tmp_path / "undisturbed")[:2]
    assert sum(answers_by_log(tmp_path / "run")) == sum(answers_by_log(tmp_path / "undisturbed"))
    assert counts["asked"] == counts["planned"] - sum(kept)


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
    status, err = _ended(command)
    assert status == 130, err
    assert "Stopping after what is under way. Press Ctrl-C again to stop at once." in err
    assert "harness eval --resume run\n" in err
    assert "Traceback" not in err
    assert _left(tmp_path) == []
    assert {cell.status for cell in Run(tmp_path / "run").cells} <= {"ok", "skipped"}


def test_accelerate_that_starts_one_process_in_silence_is_rejected(start: Start, tmp_path: Path) -> None:
    launch = (sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2")
    status, err = _ended(start(*launch, "-m", "harness", *PLAIN, "--output", "run"))
    assert status == 1
    assert (
        "Error: accelerate was asked for 2 processes and started 1: it knows no other way on a CPU. "
        "Run 'harness eval --num-processes 2 ...' (" in err
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_torchrun_starts_them_too(start: Start, tmp_path: Path) -> None:
    command = (*TORCHRUN, "-m", "harness", *FLAKY, "--output", "run")
    status, err = _ended(start(*command, ACCELERATE_USE_CPU="true"))
    assert status == 0, err
    status, err = _ended(start(*HARNESS, *FLAKY, "--output", "one"))
    assert status == 0, err
    assert _content(tmp_path / "run") == _content(tmp_path / "one")
    assert all(answers_by_log(tmp_path / "run"))


@pytest.mark.slow
def test_another_number_than_torchrun_s_is_rejected(start: Start, tmp_path: Path) -> None:
    command = (*TORCHRUN, "-m", "harness", *FLAKY, "--output", "run", "--num-processes", "3")
    status, err = _ended(start(*command, ACCELERATE_USE_CPU="true"))
    assert status != 0
    assert "Error: --num-processes asks for 3 processes, but this launcher started 2. Leave one of" in err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_failed_cell_fails_in_all_and_the_status_passes_through(start: Start, tmp_path: Path) -> None:
    command = (*HARNESS, *FLAKY, "--output", "run", "--num-processes", "2")
    status, err = _ended(start(*command, FLAKY="1"))
    assert status == 1, err
    assert "xnli:hi failed: " in err
    assert {cell.language: cell.status for cell in Run(tmp_path / "run").cells} == {
        "de": "ok",
        "hi": "failed",
    }
    status, err = _ended(start(*HARNESS, "eval", "--resume", "run", "--num-processes", "2"))
    assert status == 0, err
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
    status, err = _ended(start(*HARNESS, "eval", "--resume", "run", "--num-processes", "2"))
    assert status == 0, err
    counts = requests(tmp_path / "run")
    assert counts["asked"] == counts["planned"] - kept


def test_wrong_usage_is_reported_once_before_anything_starts(start: Start, tmp_path: Path) -> None:
    command = (*HARNESS, "eval", "--tasks", "nothing", "--model", "flaky:it", "--data", "sample")
    status, err = _ended(start(*command, "--num-processes", "2", "--output", "run"))
    assert status == 2
    assert err.count("Error: ") == 1
    assert not (tmp_path / "run").exists()
