from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.api import open_session
from harness.cli.main import main
from harness.preparing import open_prover

TASKS = open_session().catalog.names("task")


@pytest.mark.parametrize("task", TASKS)
def test_the_sample_of_every_shipped_task_is_proved(task: str) -> None:
    session = open_session()
    proof = open_prover(session, ["sample"]).prove(session.catalog.task(task))
    assert [str(item) for item in proof.findings] == []
    assert proof.items > 0


@pytest.mark.parametrize("task", ["xnli", "pawsx", "xcopa"])
def test_the_released_data_are_proved(task: str) -> None:
    root = os.environ.get("HARNESS_TEST_DATA")
    if root is None:
        pytest.skip("HARNESS_TEST_DATA names no folder with the released data")
    session = open_session()
    proof = open_prover(session, [root]).prove(session.catalog.task(task))
    assert {item.check for item in proof.findings} <= {"overlap"}


def test_the_command_is_as_before_without_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "validate", "xnli"]) == 0
    assert capsys.readouterr().out == "ok  task xnli\n"


def test_the_command_proves_with_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows.json"
    assert main(["tasks", "validate", "pawsx", "--data", "sample", "--json", str(rows)]) == 0
    assert "pawsx: 4 languages, 80 items, no fault" in capsys.readouterr().out
    [row] = json.loads(rows.read_text(encoding="utf-8"))
    assert row["proof"]["findings"] == []
    assert len(row["proof"]["languages"]) == 4
    assert row["proof"]["items"] == 80


def test_data_that_a_lock_file_does_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = tmp_path / "lock.json"
    assert main(["lock", "pawsx", "--data", "sample", "--output", str(lock)]) == 0
    command = ["tasks", "validate", "pawsx", "--data", "sample", "--locked", str(lock)]
    assert main(command) == 0
    content = json.loads(lock.read_text(encoding="utf-8"))
    [changed] = [entry for entry in content["data"] if entry["language"] == "de" and entry["split"] == "test"]
    changed["digest"] = "0" * 64
    changed["files"][0]["sha256"] = "0" * 64
    content["data"] = [
        entry for entry in content["data"] if (entry["language"], entry["split"]) != ("es", "test")
    ]
    lock.write_text(json.dumps(content), encoding="utf-8")
    capsys.readouterr()
    assert main(command) == 1
    told = capsys.readouterr().err
    assert "pawsx [de]: expected the data of 'pawsx' in 'de' (test)" in told
    assert "pawsx [es]: expected" in told
    assert "found no entry for them" in told


def test_a_lock_file_needs_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "validate", "xnli", "--locked", "absent.json"]) == 2
    assert "name the data with --data" in capsys.readouterr().err
