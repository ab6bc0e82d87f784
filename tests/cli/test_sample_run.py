"""The commands that read finished runs, on the two sample runs that all tests share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.storage.run_folder import Run
from tests.conftest import Cli


def _contents(run: Run) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", ["report", "compare", "diagnose", "board"])
def test_two_runs_are_read_and_stay_as_they_are(
    cli: Cli, sample_run: Run, trained_sample_run: Run, command: str
) -> None:
    runs = (sample_run, trained_sample_run)
    before = [_contents(run) for run in runs]
    status, _, _ = cli(command, *(run.path for run in runs), "--json", "rows.json")
    assert status == 0
    rows = json.loads(Path("rows.json").read_text(encoding="utf-8"))
    text = json.dumps(rows)
    assert rows
    assert all(task in text for task in ("xnli", "xquad", "udpos", "tatoeba"))
    assert [_contents(run) for run in runs] == before
