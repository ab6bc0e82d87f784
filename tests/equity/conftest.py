from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.api import evaluate
from harness.storage.run_folder import Run

InstallPlugin = Callable[..., Path]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def counting(install_plugin: InstallPlugin) -> None:
    """Install the adapter ``counts``."""
    source = Path(__file__).with_name("counting_adapter.py").read_text(encoding="utf-8")
    install_plugin("counting_adapter", source)


@pytest.fixture
def run(tmp_path: Path, counting: None) -> Callable[..., Run]:
    """Run a small evaluation of ``counts:ranks`` on the sample and return what it wrote."""
    numbers = iter(range(100))

    def evaluated(tasks: Any, model: str = "counts:ranks", **settings: Any) -> Run:
        given = {"data": "sample", "limit": 5, "output": tmp_path / f"run-{next(numbers)}"}
        return evaluate(tasks, model, **{**given, **settings})

    return evaluated
