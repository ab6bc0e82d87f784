"""Builders that tests of several folders share: cells of results, finished runs, and the folder of released data."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.data.resolve import DataOptions, DataRef
from harness.data.sources import DataFinder, data_ref
from harness.kinds.kind import ReadContext, read_examples
from harness.planning.run_config import RunConfig
from harness.progress import Progress
from harness.running.run import execute
from harness.running.session import Session, prepare
from harness.scores.aggregation import aggregate_tasks
from harness.storage.records import ItemRecord
from harness.storage.results import CellResult, TaskScore, TaskSummary
from harness.storage.run_folder import Run

SPEC_PLUGIN = """
from importlib.resources import files
from harness import hookimpl

@hookimpl
def harness_register_task_specs(): return [files(__name__) / "specs"]
"""
"""The source of a plugin that brings the documents of its folder ``specs``."""
TEST_DATA = "HARNESS_TEST_DATA"
"""Names the folder of released data sets; tests on them are skipped without it."""


def released_data() -> Path:
    """Return the folder of released data sets; skip the test where there is none."""
    root = os.environ.get(TEST_DATA)
    if not root:
        pytest.skip(f"{TEST_DATA} names no folder of released data")
    return Path(root)


def published_tables(name: str) -> Path:
    """Return the folder ``golden/NAME`` next to the released data; skip the test where there is none."""
    folder = released_data().resolve().parent / "golden" / name
    if not folder.is_dir():
        pytest.skip(f"there is no folder {folder}")
    return folder


def split_ref(session: Session, task: str, language: str, split: str = "test") -> DataRef:
    """Return where a split of a task is looked for."""
    entry = session.catalog.task(task)
    source = entry.spec.source(language, split)  # type: ignore[arg-type]
    assert source is not None
    return data_ref(source, owner=task, language=entry.languages.get(language), split=split, folder=None)


def read_items(session: Session, task: str, language: str, folder: Path | None = None) -> list[Any]:
    """Return the test examples of a task, from a folder of data or the Hub."""
    spec = session.catalog.task(task).spec
    source = spec.source(language, "test")
    assert source is not None
    options = DataOptions(mode="local", folders=(folder,)) if folder else DataOptions(mode="hub")
    finder = DataFinder(options, session.registry, Path("unused"))
    files = finder.find(source, split_ref(session, task, language))
    context = ReadContext.of_test(spec, language, files.label_map)
    return read_examples(session.registry.kinds.get(spec.kind), finder.rows(files), context)


def make_cell(
    task: str, language: str, metrics: Mapping[str, float | Mapping[str, Any]], /, **fields: Any
) -> dict[str, Any]:
    """Return a finished cell as results.json holds it; a metric is its value, or all that is written of it."""
    return {
        "task": task,
        "language": language,
        "protocol": "zero_shot_transfer",
        "method": "head",
        "view": {},
        "fit": "f0",
        "status": "ok",
        "n": 10,
        "metrics": {
            name: dict(score) if isinstance(score, Mapping) else {"value": score}
            for name, score in metrics.items()
        },
        **fields,
    }


def scored(cells: Iterable[Mapping[str, Any]], tasks: Mapping[str, Any]) -> list[TaskScore]:
    """Return the scores of tasks, from cells and summaries of tasks as they are on disk."""
    return aggregate_tasks(
        [CellResult.model_validate(cell) for cell in cells],
        {name: TaskSummary.model_validate(task) for name, task in tasks.items()},
    )


def make_shown_cell(
    task: str, language: str, metrics: Mapping[str, float | Mapping[str, Any]], /, **fields: Any
) -> dict[str, Any]:
    """Return a cell with everything that a report shows of it."""
    shown = {
        "version": 1,
        "split": "test",
        "stands_in": False,
        "seed": 42,
        "digest": "0" * 12,
        "data": {"pinned": True, "note": ""},
        "reason": "",
        "truncated": 0,
        "unparsed": 0,
        "seconds": 0.0,
    }
    return make_cell(task, language, metrics, **{**shown, **fields})


def write_item_run(
    folder: Path,
    cells: Sequence[tuple[Mapping[str, Any], Sequence[ItemRecord]]],
    manifest: Mapping[str, Any],
    run: Mapping[str, Any] | None = None,
    **results: Any,
) -> Run:
    """Write a run of made-up items: the fields of each cell, and its records; no scores are computed."""
    files = Run.at(folder)
    files.create()
    shown = []
    for number, (fields, records) in enumerate(cells):
        cell = {"digest": f"{number:012x}", "status": "ok", "metrics": {}, **fields}
        if cell["status"] == "ok":
            files.write_records(files.records_of(CellResult.model_validate(cell)), list(records))
        shown.append(cell)
    files.write_manifest({"suites": [], **manifest})
    files.write_results({"schema": 1, "run": {"data": "local", **(run or {})}, "cells": shown, **results})
    return Run(folder)


def run_resolved(config: RunConfig, shard: str | None = None) -> Run:
    """Execute a run, or one shard of it; its manifest says what was resolved, as that of ``harness eval`` does."""
    own = replace(config, shard=shard)
    return Run(execute(own, prepare(own), Progress()))


def write_run(
    folder: Path,
    cells: Sequence[dict[str, Any]],
    specs: Mapping[str, Any],
    *,
    run: Mapping[str, Any] | None = None,
    manifest: Mapping[str, Any] | None = None,
    **results: Any,
) -> Run:
    """Write a finished run of made-up cells, with the scores of its tasks; `results` are further keys."""
    folder.mkdir(parents=True)
    content = {
        "schema": 1,
        "run": {"id": folder.name, "data": "local", **(run or {})},
        "fits": {},
        "notes": [],
        "cells": list(cells),
        "tasks": [score.to_json() for score in scored(cells, specs)],
        "suites": [],
        **results,
    }
    described = {"model": "hf:models/mine", "tasks": dict(specs), "suites": [], **(manifest or {})}
    (folder / "manifest.json").write_text(json.dumps(described), encoding="utf-8")
    (folder / "results.json").write_text(json.dumps(content), encoding="utf-8")
    return Run(folder)
