from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.planning.lock_file import Lock
from harness.planning.run_config import RunConfig, data_options
from harness.running.session import Prepared, prepare
from harness.storage.run_folder import Run
from tests.builders import run_resolved

MakePrepared = Callable[..., Prepared]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


def _config(tasks: tuple[str, ...], model: str, data: Any, settings: dict[str, Any]) -> RunConfig:
    return RunConfig(tasks=tasks, model=model, data=data_options([data]), **settings)


@pytest.fixture
def prepared() -> MakePrepared:
    """Plan a run of ``baseline:char-ngram`` on the sample, unless other things are asked for."""

    def make(
        *tasks: str, model: str = "baseline:char-ngram", data: Any = "sample", **settings: Any
    ) -> Prepared:
        return prepare(_config(tasks, model, data, settings))

    return make


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Run]:
    """Run a small evaluation; its manifest says what was resolved, as that of eval does."""
    numbers = iter(range(100))

    def make(*tasks: str, model: str = "baseline:char-ngram", data: Any = "sample", **settings: Any) -> Run:
        output = tmp_path / f"run-{next(numbers)}"
        given = {"recipe": "quick", "train_limit": 20, "limit": 3, "output": output, **settings}
        return run_resolved(_config(tasks, model, data, given))

    return make


@pytest.fixture
def write_lock(tmp_path: Path) -> Callable[[Lock], Path]:
    """Write a lock file and return its path."""

    def write(lock: Lock) -> Path:
        path = tmp_path / "harness.lock.json"
        path.write_text(lock.to_text(), encoding="utf-8")
        return path

    return write
