"""Scores a run again from its records: needs neither the model nor the data; a metric may be another program."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from harness.analysis.metric_process import CommandScores, MetricCommand, ask_command
from harness.errors import UsageError
from harness.metrics.metric import Metric, MetricContext
from harness.metrics.scoring import CellScorer, MetricScore, ScoreInput
from harness.registry.registry import Registry
from harness.scores.aggregation import aggregate_tasks
from harness.scores.task_intervals import add_task_intervals
from harness.storage.records import ItemRecord, RecordWriter
from harness.storage.results import CellResult, TaskSummary
from harness.storage.run_folder import Run, with_baselines

CHUNK = 2_048
"""Records that are scored together."""


def rescore(
    path: Path, registry: Registry, further: Sequence[str] = (), commands: Sequence[MetricCommand] = ()
) -> None:
    """Compute all metrics of a run again, the run's own, `further` ones and those of `commands`; write its results.

    Raises `UsageError` when a further metric fits no task of the run, `HarnessError` where a command fails,
    `DataError` where records are broken; then nothing is written.
    """
    main_run = Run(path)
    further_metrics = [
        *(registry.metrics.get(name) for name in further),
        *(replace(registry.metrics.get(command.metric), ready=None) for command in commands),
    ]
    kinds = {task.kind for task in main_run.manifest.tasks.values()}
    for metric in further_metrics:
        if not metric.kinds & kinds:
            raise UsageError(
                f"The metric {metric.name!r} scores {', '.join(sorted(metric.kinds))}; this run has "
                f"{', '.join(sorted(kinds))}."
            )
        methods = {
            str(cell.method) for run in with_baselines(main_run) for cell in run.cells if cell.status == "ok"
        }
        if metric.methods is not None and not metric.methods & methods:
            raise UsageError(
                f"The metric {metric.name!r} scores answers of the method {' or '.join(sorted(metric.methods))}; "
                f"this run's are of {', '.join(sorted(methods)) or 'no method'}."
            )
        if metric.ready is not None:
            metric.ready()
    command_scores = [ask_command(command, with_baselines(main_run)) for command in commands]
    with ExitStack() as unfinished:
        scored = [
            _score_run(run, registry, further_metrics, command_scores, unfinished)
            for run in with_baselines(main_run)
        ]
        for item in scored:
            _write(item, registry)
    for scores in command_scores:
        scores.kept.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rescored:
    """A run with its new scores, before a reader can see anything of it."""

    run: Run
    tasks: Mapping[str, TaskSummary]
    metrics: Mapping[str, Mapping[str, MetricScore]]
    """By the digest of the cell."""
    records: Sequence[RecordWriter]
    """The new records of all scored cells, sealed."""


def _score_run(
    run: Run,
    registry: Registry,
    further: Sequence[Metric],
    command_scores: Sequence[CommandScores],
    unfinished: ExitStack,
) -> _Rescored:
    tasks = {}
    for name in dict.fromkeys(
        [*run.manifest.tasks, *(cell.task for cell in run.cells if cell.status == "ok")]
    ):
        task = run.manifest.tasks[name]
        added = [metric.name for metric in further if task.kind in metric.kinds]
        tasks[name] = task.changed(
            metrics=list(dict.fromkeys([*task.metrics, *added])),
            shown=list(dict.fromkeys([*(task.shown or task.headline), *added])),
            metric_options={
                **task.metric_options,
                **{
                    scorer.command.metric: scorer.signature
                    for scorer in command_scores
                    if scorer.command.metric in added
                },
            },
        )
    scores, writers = {}, []
    for cell in run.cells:
        if cell.status == "ok":
            task = tasks[cell.task]
            candidates = [registry.metrics.get(name) for name in task.metrics]
            metrics = [
                metric
                for metric in candidates
                if metric.scores_method(str(cell.method))
                and (metric.missing is None or metric.missing() is None)
            ]
            file, model = run.records_of(cell), run.manifest.model_name
            writer = unfinished.enter_context(
                RecordWriter(file, model=model, task=cell.task, language=cell.language)
            )
            records = run.records(cell)
            for scorer in command_scores:
                if scorer.command.metric in task.metrics:
                    records = map(partial(scorer.add, run=run, cell=cell), records)
            scores[cell.digest] = _score(records, cell, task, metrics, writer)
            writers.append(writer)
    return _Rescored(run=run, tasks=tasks, metrics=scores, records=writers)


def _score(
    records: Iterator[ItemRecord],
    cell: CellResult,
    task: TaskSummary,
    metrics: Sequence[Metric],
    writer: RecordWriter,
) -> Mapping[str, MetricScore]:
    """Return the metrics of a cell, whose records are read, and written with their new scores, chunk by chunk."""
    language = task.answer_language or cell.language
    context = MetricContext(language=language, labels=tuple(task.labels), options=task.metric_options)
    scorer = CellScorer(metrics, context, task=cell.task)
    while chunk := list(itertools.islice(records, CHUNK)):
        labelled = [record for record in chunk if record.reference is not None]
        contributions = scorer.add([ScoreInput.of(record) for record in labelled])
        indices = itertools.count()
        scored = []
        for record in chunk:
            index = None if record.reference is None else next(indices)
            item_scores = (
                {} if index is None else {name: values[index] for name, values in contributions.items()}
            )
            scored.append(replace(record, scores=item_scores))
        writer.add(scored)
    scores = scorer.finish()
    writer.seal(scores.items)
    return scores.metrics


def _write(item: _Rescored, registry: Registry) -> None:
    run = item.run
    finished = run.finished_cells()
    for writer in item.records:
        writer.close()
    cells = []
    for cell in run.cells:
        scores = item.metrics.get(cell.digest)
        metrics = {} if scores is None else {name: score.to_json() for name, score in scores.items()}
        cells.append(cell if scores is None else CellResult(**{**cell.to_json(), "metrics": metrics}))
        if cell.digest in finished:  # a resumed run takes the cell with its new scores
            run.keep(finished[cell.digest].changed(result=cells[-1]))
    results = run.results.changed(cells=cells, tasks=aggregate_tasks(cells, item.tasks))
    suites = run.manifest.suites
    run.write_results(add_task_intervals(results, item.tasks, suites, run.records_of, registry.metrics))
    run.write_manifest(run.manifest.changed(tasks=item.tasks))
