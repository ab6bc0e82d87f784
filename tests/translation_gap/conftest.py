"""Runs whose cells are versions of a test set, in the real formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from harness.storage.records import ItemRecord
from harness.storage.run_folder import Run
from harness_translation.gap.measure import GapOptions, GapValue, SystemGaps, compute_gaps
from harness_translation.gap.system import gap_systems

MakeRun = Callable[..., Run]
Version = tuple[str, str, str]
"""Language, variant and translator; the variant of the human text is ``zs`` with no translator."""
SPEC = {
    "kind": "sequence_classification",
    "labels": ["no", "yes"],
    "headline": ["accuracy"],
    "metric_options": {},
    "axes": [],
    "parallel": True,
    "source": "en",
}
PER_CLUSTER = 3


def pair(number: int, right: float, **given: Any) -> ItemRecord:
    """Return a record whose premise it shares with two others."""
    cluster = f"premise {number // PER_CLUSTER}"
    texts = given.pop("texts", {"premise": cluster, "hypothesis": f"hypothesis {number}"})
    gold = given.pop("gold", "yes")
    fields = {
        "inputs_digest": json.dumps(texts),
        "prediction": {"label": "yes" if right else "no"},
        "reference": gold,
        "scores": {"accuracy": float(right)},
        "cluster": cluster,
        "group": None,
        "tags": {},
        "flags": {},
        "inputs": json.dumps({"id": str(number), "inputs": texts}, ensure_ascii=False),
    }
    return ItemRecord(id=str(number), **{**fields, **given})


def view_of(variant: str, translator: str, **more: str) -> dict[str, str]:
    named = {} if variant == "zs" else {"variant": variant, "translator": translator}
    return {**named, **more}


def write_run(
    path: Path,
    cells: Mapping[Version, Sequence[ItemRecord]],
    *,
    cell: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    task: str = "xnli",
    model: str = "hf:model",
    view: Mapping[str, str] | None = None,
    seeds: Sequence[int] = (42,),
) -> Run:
    """Write a run from version -> records, the same for every seed."""
    folder = Run.at(path)
    folder.create()
    shown: list[dict[str, Any]] = []
    for seed in seeds:
        for (language, variant, translator), records in cells.items():
            digest = f"{len(shown):012x}"
            folder.write_records(folder.records_path(task, language, digest), list(records))
            own = {"task": task, "language": language, "digest": digest, "metrics": {}, "seed": seed}
            usual = {"version": 1, "protocol": "zero_shot_transfer", "method": "head", "fit": f"fit{seed}"}
            conditions = {"view": view_of(variant, translator, **(view or {})), "status": "ok"}
            shown.append({**usual, **own, **conditions, **(cell or {})})
    folder.write_manifest(
        {"model": model, "tasks": {task: {**SPEC, **(spec or {})}}, "suites": [], "specs": {}}
    )
    folder.write_results(
        {"schema": 1, "run": {"data": "local", "id": path.name}, "cells": shown, "tasks": [], "suites": []}
    )
    return Run(folder.path)


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Write runs by name: see `write_run`."""

    def make(name: str, cells: Mapping[Version, Sequence[ItemRecord]], **given: Any) -> Run:
        return write_run(tmp_path / name, cells, **given)

    return make


ITEMS = 60
RATES = {"zs": 0.7, "tt": 0.68, "te": 0.78, "bt": 0.85}


def gaps(*runs: Run, metric: str | None = None, **options: Any) -> SystemGaps:
    (found,) = compute_gaps(gap_systems(runs), metric, GapOptions(**options))
    return found


def value(found: SystemGaps, quantity: str, language: str | None, translator: str = "mt") -> GapValue:
    own = found.find(quantity, language, translator)
    assert own is not None
    return own


def drawn(seed: int, items: int = ITEMS) -> dict[str, list[bool]]:
    """Return right and wrong answers by variant that share what makes a premise hard."""
    generator = np.random.default_rng(seed)
    hard = np.repeat(generator.random(items // 3 + 1), 3)[:items]
    return {
        variant: (generator.random(items) * 0.6 + 0.4 * hard < rate).tolist()
        for variant, rate in RATES.items()
    }


def versions(
    language: str, seed: int, translators: Sequence[str] = ("mt",)
) -> dict[Version, list[ItemRecord]]:
    own = drawn(seed)
    found: dict[Version, list[ItemRecord]] = {(language, "zs", ""): records(own["zs"])}
    for number, name in enumerate(translators):
        again = drawn(seed + 100 * number)
        found |= {(language, variant, name): records(again[variant]) for variant in ("tt", "te", "bt")}
    return found


def records(right: Sequence[bool], **given: Any) -> list[ItemRecord]:
    return [pair(number, own, **given) for number, own in enumerate(right)]


def share(own: Mapping[str, Sequence[bool]], variant: str) -> float:
    return fmean(own[variant])


@pytest.fixture
def made(make_run: MakeRun) -> Run:
    source = records([True] * (ITEMS - 6) + [False] * 6)
    return make_run("run", {("en", "zs", ""): source, **versions("sw", 1), **versions("de", 2)})
