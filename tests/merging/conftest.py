from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.planning.run_config import RunConfig, data_options
from harness.storage.run_folder import Run
from tests.builders import run_resolved

MakeRun = Callable[..., Run]


@pytest.fixture(scope="session")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeRun]:
    """Run a small evaluation on the sample, whole or one shard of it; its manifests say what eval's do."""
    base = tmp_path_factory.mktemp("merging")
    numbers = iter(range(1000))

    def make(
        *tasks: str, model: str = "baseline:char-ngram", shard: str | None = None, **settings: Any
    ) -> Run:
        given: dict[str, Any] = {"recipe": "quick", "train_limit": 30, "limit": 4, **settings}
        output = base / f"run-{next(numbers)}"
        data = data_options([given.pop("data", "sample")])
        config = RunConfig(tasks=tasks, model=model, data=data, output=output, **given)
        return run_resolved(config, shard)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(base / "cache"))
        yield make


@pytest.fixture
def edit(tmp_path: Path) -> Callable[..., Run]:
    """Copy a run and change its results or its manifest."""
    import shutil

    numbers = iter(range(100))

    def edited(run: Run, change: Callable[[dict[str, Any]], object], file: str = "results.json") -> Run:
        copy = tmp_path / f"edited-{next(numbers)}"
        shutil.copytree(run.path, copy)
        content = json.loads((copy / file).read_text(encoding="utf-8"))
        change(content)
        (copy / file).write_text(json.dumps(content), encoding="utf-8")
        return Run(copy)

    return edited
