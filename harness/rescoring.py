"""Scores a run again from its records: needs neither the model nor the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.aggregation import aggregate_suites, aggregate_tasks
from harness.errors import UsageError
from harness.metrics.metric import Metric, MetricContext
from harness.registry import Registry
from harness.results import ItemRecord, Run, RunFolder, with_baselines
from harness.scoring import CellScores, ScoreInput, score_cell

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
        methods = {
            cell["method"] for run in with_baselines(own) for cell in run.cells if cell["status"] == "ok"
        }
        if metric.methods is not None and not metric.methods & methods:
            raise UsageError(
                f"The metric {metric.name!r} scores answers of the method {' or '.join(sorted(metric.methods))}; "
                f"this run's are of {', '.join(sorted(methods)) or 'no method'}."
            )
        if metric.ready is not None:
            metric.ready()
    scored = [_score_run(run, registry, wanted) for run in with_baselines(own)]
    for item in scored:
        _write(item)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rescored:
    """A run with its new scores, before anything of it is written."""

    run: Run
    specs: Mapping[str, dict[str, Any]]
    scores: Mapping[str, CellScores]
    """By the digest of the cell."""


def _score_run(run: Run, registry: Registry, further: Sequence[Metric]) -> _Rescored:
    specs = {name: dict(spec) for name, spec in run.manifest["tasks"].items()}
    for spec in specs.values():
        added = [metric.name for metric in further if spec["kind"] in metric.kinds]
        spec["metrics"] = list(dict.fromkeys([*spec["metrics"], *added]))
        spec["shown"] = list(dict.fromkeys([*(spec.get("shown") or spec["headline"]), *added]))
    scores = {}
    for cell in run.cells:
        if cell["status"] == "ok":
            spec = specs[cell["task"]]
            named = [registry.metrics.get(name) for name in spec["metrics"]]
            metrics = [metric for metric in named if metric.scores_method(cell["method"])]
            scores[cell["digest"]] = _score(list(run.records(cell)), cell, spec, metrics)
    return _Rescored(run=run, specs=specs, scores=scores)


def _score(
    records: Sequence[ItemRecord], cell: Mapping[str, Any], spec: Mapping[str, Any], metrics: Sequence[Metric]
) -> CellScores:
    context = MetricContext(
        language=cell["language"], labels=tuple(spec["labels"]), options=spec["metric_options"]
    )
    inputs = [
        ScoreInput(
            id=record.id, prediction=record.prediction, reference=record.reference, cluster=record.cluster
        )
        for record in records
    ]
    return score_cell(metrics, inputs, context)


def _write(item: _Rescored) -> None:
    run, folder = item.run, RunFolder(item.run.path)
    cells = []
    for cell in run.cells:
        scores = item.scores.get(cell.get("digest", ""))
        if scores is None:
            cells.append(cell)
            continue
        records = [
            replace(record, scores={name: values[index] for name, values in scores.items.items()})
            for index, record in enumerate(run.records(cell))
        ]
        folder.write_records(folder.records_path(cell["task"], cell["language"], cell["digest"]), records)
        metrics = {name: score.to_json() for name, score in scores.metrics.items()}
        cells.append({**cell, "metrics": metrics})
    rows = aggregate_tasks(cells, item.specs)
    suites = aggregate_suites(rows, run.manifest.get("suites", []))
    folder.write_results({**run.results, "cells": cells, "tasks": rows, "suites": suites})
    folder.write_manifest({**run.manifest, "tasks": item.specs})
