from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.api import evaluate
from harness.planning.plan import Plan
from harness.planning.run_config import RunConfig, data_options
from harness.running.session import prepare
from harness.storage.run_folder import Run

InstallPlugin = Callable[..., Path]
RunTasks = Callable[..., Run]
MakePlan = Callable[..., Plan]
DataFolder = Callable[[Mapping[str, str | bytes]], Path]
Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def planted(install_plugin: InstallPlugin) -> None:
    """Install the adapter ``planted``."""
    source = Path(__file__).with_name("planted_adapter.py").read_text(encoding="utf-8")
    install_plugin("planted_adapter", source)


@pytest.fixture
def make_plan() -> Callable[..., Plan]:
    """Plan a run of ``baseline:majority`` on the sample, unless other things are asked for."""

    def make(*tasks: str, model: str = "baseline:majority", data: Any = "sample", **settings: Any) -> Plan:
        options = data_options([data] if isinstance(data, str | Path) else data)
        config = RunConfig(tasks=tasks, model=model, data=options, **settings)
        return prepare(config).plan

    return make


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Run]:
    """Run a small evaluation on the sample and return what it wrote."""
    numbers = iter(range(100))

    def evaluated(tasks: Any, model: str = "baseline:char-ngram", **settings: Any) -> Run:
        given = {"data": "sample", "recipe": "quick", "train_limit": 30, "limit": 5}
        given["output"] = tmp_path / f"run-{next(numbers)}"
        return evaluate(tasks, model, **{**given, **settings})

    return evaluated


@pytest.fixture
def data_folder(tmp_path: Path) -> Callable[..., Path]:
    """Write files into a data folder, laid out like the published ones, and return the folder."""

    def put(files: Mapping[str, str | bytes]) -> Path:
        for name, content in files.items():
            path = tmp_path / "data" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return tmp_path / "data"

    return put


@pytest.fixture
def calls(install_plugin: InstallPlugin) -> list[Any]:
    """Install the adapter ``asks``; what its models were asked."""
    source = Path(__file__).with_name("asking_adapter.py").read_text(encoding="utf-8")
    install_plugin("asking_adapter", source)
    kept: list[Any] = importlib.import_module("asking_adapter").CALLS
    kept.clear()
    return kept


@pytest.fixture
def take_calls(calls: list[Any]) -> Callable[[], list[Any]]:
    """A function that returns what the models of ``asks`` were asked since its last call."""

    def taken() -> list[Any]:
        recorded = list(calls)
        calls.clear()
        return recorded

    return taken
