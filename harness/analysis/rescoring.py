"""Scores a run again from its records: needs neither the model nor the data."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.metrics.aggregation import aggregate_tasks
from harness.metrics.metric import Metric, MetricContext
from harness.metrics.scoring import CellScorer, MetricScore, ScoreInput
from harness.metrics.task_intervals import add_task_intervals
from harness.registry.registry import Registry
from harness.storage.records import ItemRecord, RecordWriter
from harness.storage.run_folder import Run, RunFolder, with_baselines

__all__ = ["rescore"]

CHUNK = 2_048
"""Records that are scored together."""


def rescore(path: Path, registry: Registry, further: Sequence[str] = ()) -> None:
    """Compute all metrics of a run again, the run's own and `further` ones, and write its results.

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
    with ExitStack() as unfinished:
        scored = [_score_run(run, registry, wanted, unfinished) for run in with_baselines(own)]
        for item in scored:
            _write(item, registry)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rescored:
    """A run with its new scores, before a reader can see anything of it."""

    run: Run
    specs: Mapping[str, dict[str, Any]]
    metrics: Mapping[str, Mapping[str, MetricScore]]
    """By the digest of the cell."""
    records: Sequence[RecordWriter]
    """The new records of all scored cells, sealed."""


def _score_run(run: Run, registry: Registry, further: Sequence[Metric], unfinished: ExitStack) -> _Rescored:
    known = run.manifest["tasks"]
    specs = {name: dict(known[name]) for name in {*known, *(cell["task"] for cell in run.cells)}}
    for spec in specs.values():
        added = [metric.name for metric in further if spec["kind"] in metric.kinds]
        spec["metrics"] = list(dict.fromkeys([*spec["metrics"], *added]))
        spec["shown"] = list(dict.fromkeys([*(spec.get("shown") or spec["headline"]), *added]))
    scores, writers = {}, []
    for cell in run.cells:
        if cell["status"] == "ok":
            spec = specs[cell["task"]]
            named = [registry.metrics.get(name) for name in spec["metrics"]]
            metrics = [metric for metric in named if metric.scores_method(cell["method"])]
            folder = RunFolder(run.path)
            path = folder.records_path(cell["task"], cell["language"], cell["digest"])
            writer = unfinished.enter_context(RecordWriter(path))
            scores[cell["digest"]] = _score(run.records(cell), cell, spec, metrics, writer)
            writers.append(writer)
    return _Rescored(run=run, specs=specs, metrics=scores, records=writers)


def _score(
    records: Iterator[ItemRecord],
    cell: Mapping[str, Any],
    spec: Mapping[str, Any],
    metrics: Sequence[Metric],
    writer: RecordWriter,
) -> Mapping[str, MetricScore]:
    """Return the metrics of a cell, whose records are read, and written with their new scores, chunk by chunk."""
    context = MetricContext(
        language=cell["language"], labels=tuple(spec["labels"]), options=spec["metric_options"]
    )
    scorer = CellScorer(metrics, context, task=cell["task"])
    while chunk := list(itertools.islice(records, CHUNK)):
        labelled = [record for record in chunk if record.reference is not None]
        contributions = scorer.add([_score_input(record) for record in labelled])
        places = itertools.count()
        scored = []
        for record in chunk:
            place = None if record.reference is None else next(places)
            own = {} if place is None else {name: values[place] for name, values in contributions.items()}
            scored.append(replace(record, scores=own))
        writer.add(scored)
    scores = scorer.finish()
    writer.seal(scores.items)
    return scores.metrics


def _score_input(record: ItemRecord) -> ScoreInput:
    return ScoreInput(
        id=record.id,
        prediction=record.prediction,
        reference=record.reference,
        cluster=record.cluster,
        group=record.group,
        tags=record.tags,
    )


def _write(item: _Rescored, registry: Registry) -> None:
    run, folder = item.run, RunFolder(item.run.path)
    for writer in item.records:
        writer.close()
    cells = []
    for cell in run.cells:
        scores = item.metrics.get(cell.get("digest", ""))
        own = {} if scores is None else {name: score.to_json() for name, score in scores.items()}
        cells.append(cell if scores is None else {**cell, "metrics": own})
    results = {**run.results, "cells": cells, "tasks": aggregate_tasks(cells, item.specs)}
    suites = run.manifest.get("suites", [])
    folder.write_results(add_task_intervals(results, item.specs, suites, folder.records_of, registry.metrics))
    folder.write_manifest({**run.manifest, "tasks": item.specs})
