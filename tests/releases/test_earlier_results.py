"""Run folders of earlier versions are read by this one: ``VERSION/first`` and ``VERSION/second``, with sample data.

Every release adds a folder, which never changes after that: ``harness eval --tasks xnli:en+sw+de,tatoeba:de --data
sample`` with ``baseline:char-ngram`` and ``baseline:majority``, without the journal.
"""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.storage.results import SCHEMA
from tests.conftest import Cli

VERSIONS = sorted(path for path in Path(__file__).parent.iterdir() if (path / "first").is_dir())


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the runs of a version."""
    return Path(shutil.copytree(request.param, tmp_path / "runs"))


def _stored(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def _scores(cells: list[dict[str, Any]]) -> dict[tuple[str, str, str, str], tuple[float, list[float]]]:
    return {
        (cell["task"], cell["language"], cell["protocol"], name): (metric["value"], metric["ci"])
        for cell in cells
        for name, metric in cell["metrics"].items()
    }


def test_there_is_a_folder_of_the_first_version() -> None:
    assert "0.1" in [path.name for path in VERSIONS]


def test_a_run_is_loaded_with_its_scores(folder: Path) -> None:
    run = harness.load(folder / "first")
    stored = _scores(_stored(folder / "first")["cells"])
    assert len(stored) == 5
    frame = run.scores()
    read = {
        (row["task"], row["language"], row["protocol"], row["metric"]): (
            row["value"],
            [row["low"], row["high"]],
        )
        for row in frame.filter(status="ok").to_dicts()
        if row["language"] is not None
    }
    assert {key: read.get(key) for key in stored} == stored


def test_a_run_is_reported(folder: Path, cli: Cli) -> None:
    status, printed, _ = cli("report", folder / "first", "--format", "csv")
    assert status == 0
    rows = {
        (row["task"], row["language"], row["protocol"], row["metric"]): float(row["value"])
        for row in csv.DictReader(printed.splitlines())
    }
    stored = _scores(_stored(folder / "first")["cells"])
    assert {key: rows.get(key) for key in stored} == pytest.approx({key: stored[key][0] for key in stored})


def test_runs_are_compared(folder: Path, cli: Cli, tmp_path: Path) -> None:
    status, _, _ = cli("compare", folder / "first", folder / "second", "--json", tmp_path / "rows.json")
    assert status == 0
    assert {row["task"] for row in json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))} == {
        "xnli",
        "tatoeba",
    }


def test_a_run_is_scored_again_as_it_was(folder: Path, cli: Cli) -> None:
    before = _stored(folder / "first")
    status, _, reported = cli("score", folder / "first")
    assert status == 0, reported
    after = _stored(folder / "first")
    assert after["schema"] == SCHEMA
    assert _scores(after["cells"]) == _scores(before["cells"])


def test_runs_are_ranked_on_a_board(folder: Path, cli: Cli, tmp_path: Path) -> None:
    status, _, reported = cli(
        "board", folder / "first", folder / "second", "--output", tmp_path / "board.html"
    )
    assert status == 0, reported
    page = (tmp_path / "board.html").read_text(encoding="utf-8")
    assert "char-ngram" in page
    assert "majority" in page
