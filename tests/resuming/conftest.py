"""A finished run of several tasks that tests damage and resume."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import run_command
from harness.storage.journal_log import DESCRIPTION, KEY_BYTES, Log, log_paths
from harness.storage.run_folder import Run

Cli = Callable[..., tuple[int, str, str]]
TASKS = "xnli:de+hi,udpos:de,tatoeba:de"
EVAL = (
    *("eval", "--tasks", TASKS, "--model", "baseline:char-ngram", "--data", "sample", "--recipe", "quick"),
    *("--train-limit", "30", "--limit", "6"),
)


class Done:
    """An undisturbed run, its cache, and how others are compared with it."""

    def __init__(self, path: Path, cache: Path) -> None:
        self.path = path
        self.cache = cache
        self.command = EVAL
        self.planned: int = Run(path).results.run.requests["planned"]

    def answers(self, path: Path) -> int:
        """Return how many answers the journal of a run holds, each counted as often as it was written."""
        logs = [Log(file) for file in log_paths(path / "journal")]
        return sum(content[KEY_BYTES] != DESCRIPTION for log in logs for _, _, content in log.records())

    def assert_equal(self, path: Path) -> None:
        """Assert that a run has the same predictions and metrics to the bit."""
        assert scores(path) == scores(self.path)
        for cell in Run(self.path).cells:
            if cell.status == "ok":
                own, other = (Run(folder).records(cell) for folder in (self.path, path))
                assert list(own) == list(other)

    def requests(self, path: Path) -> dict[str, int]:
        """Return the counts of a run's requests."""
        counts: dict[str, int] = Run(path).results.run.requests
        return counts


def scores(path: Path) -> list[dict[str, Any]]:
    """Return the cells of a run without their times."""
    return [
        {name: value for name, value in cell.to_json().items() if name != "seconds"}
        for cell in Run(path).cells
    ]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(folder / "cache"))
        assert run_command([*EVAL, "--output", str(folder / "run")]) == 0
        yield Done(folder / "run", folder / "cache")


@pytest.fixture
def done(undisturbed: Done, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Done:
    """Copy the undisturbed run to ``run`` below the working folder."""
    shutil.copytree(undisturbed.path, "run")
    monkeypatch.setenv("HARNESS_CACHE", str(undisturbed.cache))
    return undisturbed


@pytest.fixture
def flaky(install_plugin: Callable[..., Path]) -> Path:
    """Install the adapter ``flaky``, and return the folder that it was put into."""
    path = Path(__file__).parents[1] / "processes" / "flaky_adapter.py"
    source = path.read_text(encoding="utf-8")
    return install_plugin("flaky_adapter", source)


@pytest.fixture
def edit() -> Callable[..., None]:
    """Change a JSON file."""

    def edited(path: Path, change: Callable[[Any], None]) -> None:
        content = json.loads(path.read_text(encoding="utf-8"))
        change(content)
        path.write_text(json.dumps(content), encoding="utf-8")

    return edited
