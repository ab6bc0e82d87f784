from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.api import data_options, execute, prepare
from harness.planning.plan import Plan, RunConfig
from harness.planning.resolution import resolve_plan
from harness.planning.shards import parse_shard, shard_summary, take_shard
from harness.progress import SilentProgress
from harness.specs.catalog import Catalog
from harness.storage.run_folder import Run

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
        return _run(config, shard)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(base / "cache"))
        yield make


def _run(config: RunConfig, shard: str | None) -> Run:
    from dataclasses import replace

    whole = prepare(config)
    parts = whole
    if shard is not None:
        part = parse_shard(shard)
        baselines = tuple(take_shard(plan, part, may_be_empty=True) for plan in whole.baselines)
        parts = replace(whole, plan=take_shard(whole.plan, part), baselines=baselines)
    path = execute(config, parts, SilentProgress())
    catalog = whole.session.catalog
    _describe(path, whole.plan, catalog, shard)
    for plan in whole.baselines:
        _describe(path / "baselines" / plan.model.reference.ref, plan, catalog, shard)
    return Run(path)


def _describe(folder: Path, plan: Plan, catalog: Catalog, shard: str | None) -> None:
    file = folder / "manifest.json"
    if not file.is_file():
        return
    manifest = json.loads(file.read_text(encoding="utf-8"))
    manifest["resolved"] = resolve_plan(plan, catalog).model_dump(mode="json")
    if shard is not None:
        manifest |= shard_summary(plan, parse_shard(shard))
    file.write_text(json.dumps(manifest), encoding="utf-8")


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
