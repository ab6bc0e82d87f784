"""Scores a run again from its records: needs neither the model nor the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.aggregation import aggregate_tasks
from harness.errors import UsageError
from harness.metrics.metric import Metric, MetricContext
from harness.registry import Registry
from harness.results import ItemRecord, Run, RunFolder, with_baselines
from harness.scoring import ScoreInput, score_cell

__all__ = ["rescore"]


def rescore(path: Path, registry: Registry, further: Sequence[str] = ()) -> None:
    """Compute all metrics of a run anew, the run's own and `further` ones, and write its results.

    Raises `UsageError` when a further metric fits no task of the run, `DataError` where records are broken; then
    nothing is written.
    """
    own = Run(path)
    wanted = [registry.metrics.get(name) for name in further]
    kinds = {spec["kind"] for spec in own.manifest["tasks"].values()}
    for metric in wanted:
        if not metric.kinds & kinds:
            raise UsageError(
                f"The metric {metric.name!r} scores {', '.join(sorted(metric.kinds))}; this run has "
                f"{', '.join(sorted(kinds))}."
            )
    for run in with_baselines(own):
        _rescore_one(run, registry, wanted)


def _rescore_one(run: Run, registry: Registry, further: Sequence[Metric]) -> None:
    specs = {name: dict(spec) for name, spec in run.manifest["tasks"].items()}
    cells = []
    for cell in run.cells:
        if cell["status"] != "ok":
            cells.append(cell)
            continue
        spec = specs[cell["task"]]
        metrics = {name: registry.metrics.get(name) for name in spec["metrics"]}
        metrics |= {metric.name: metric for metric in further if spec["kind"] in metric.kinds}
        cells.append(_rescored(run, cell, spec, list(metrics.values())))
    for spec in specs.values():
        spec["metrics"] = list(
            dict.fromkeys([*spec["metrics"], *(m.name for m in further if spec["kind"] in m.kinds)])
        )
    folder = RunFolder(run.path)
    folder.write_results({**run.results, "cells": cells, "tasks": aggregate_tasks(cells, specs)})
    folder.write_manifest({**run.manifest, "tasks": specs})


def _rescored(
    run: Run, cell: dict[str, Any], spec: dict[str, Any], metrics: Sequence[Metric]
) -> dict[str, Any]:
    records = list(run.records(cell))
    context = MetricContext(
        language=cell["language"], labels=tuple(spec["labels"]), options=spec["metric_options"]
    )
    inputs = [
        ScoreInput(
            id=record.id, prediction=record.prediction, reference=record.reference, cluster=record.cluster
        )
        for record in records
    ]
    scores = score_cell(metrics, inputs, context)
    changed: list[ItemRecord] = [
        replace(record, scores={name: values[index] for name, values in scores.items.items()})
        for index, record in enumerate(records)
    ]
    folder = RunFolder(run.path)
    folder.write_records(folder.records_path(cell["task"], cell["language"], cell["digest"]), changed)
    return {**cell, "metrics": {name: score.to_json() for name, score in scores.metrics.items()}}
