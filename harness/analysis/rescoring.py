"""Scores a run again from its records, with the gold of its data or a corrected one.

It needs neither the model nor the data; a metric may be another program. With a corrected gold it makes another run of
the same answers, with a name of its own.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.analysis.metric_process import CommandScores, MetricCommand, ask_command
from harness.data.gold import VIEW, CellGold, GoldCounts, GoldFile, gold_note
from harness.errors import UsageError
from harness.metrics.metric import Metric
from harness.metrics.scoring import CellScorer, MetricScore, task_context
from harness.planning.plan import identity_digest
from harness.registry.registry import Registry
from harness.scores.aggregation import aggregate_tasks
from harness.scores.task_intervals import add_task_intervals
from harness.storage.files import FileNotWrittenError
from harness.storage.records import ItemRecord, RecordWriter
from harness.storage.results import CellResult, TaskSummary
from harness.storage.run_folder import Run, with_baselines

CHUNK = 2_048
"""Records that are scored together."""
FLAGGED = ("truncated", "unparsed", "unfinished", "unanswered")
"""Numbers of a cell that count the flags of its records."""


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
    runs = with_baselines(main_run)
    methods = {str(cell.method) for run in runs for cell in run.cells if cell.status == "ok"}
    for metric in further_metrics:
        if not metric.kinds & kinds:
            raise UsageError(
                f"The metric {metric.name!r} scores {', '.join(sorted(metric.kinds))}; this run has "
                f"{', '.join(sorted(kinds))}."
            )
        if metric.methods is not None and not metric.methods & methods:
            raise UsageError(
                f"The metric {metric.name!r} scores answers of the method {' or '.join(sorted(metric.methods))}; "
                f"this run's are of {', '.join(sorted(methods)) or 'no method'}."
            )
        if metric.ready is not None:
            metric.ready()
    command_scores = [ask_command(command, runs) for command in commands]
    with ExitStack() as unfinished:
        scored = [_score_run(run, registry, further_metrics, command_scores, unfinished) for run in runs]
        for item in scored:
            _write(item, registry)
    for scores in command_scores:
        scores.path.unlink(missing_ok=True)


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
    options = {scorer.command.metric: scorer.signature for scorer in command_scores}
    names = [*run.manifest.tasks, *(cell.task for cell in run.cells if cell.status == "ok")]
    for name in dict.fromkeys(names):
        task = run.manifest.tasks[name]
        added = [metric.name for metric in further if task.kind in metric.kinds]
        signatures = {metric: options[metric] for metric in added if metric in options}
        tasks[name] = task.changed(
            metrics=list(dict.fromkeys([*task.metrics, *added])),
            shown=list(dict.fromkeys([*(task.shown or task.headline), *added])),
            metric_options=task.metric_options | signatures,
        )
    scores, writers = {}, []
    for cell in run.cells:
        if cell.status != "ok":
            continue
        task = tasks[cell.task]
        asked_for = [metric.name for metric in further]
        metrics = [
            metric
            for metric in map(registry.metrics.get, task.metrics)
            if metric.scores_method(str(cell.method))
            # The run went without it where its prompt gave nothing to score.
            and (not metric.prompt_field or metric.name in [*cell.metrics, *asked_for])
            and (metric.missing is None or metric.missing() is None)
        ]
        writer = unfinished.enter_context(_writer(run, cell, run.records_of(cell)))
        records = run.records(cell)
        for scorer in command_scores:
            if scorer.command.metric in task.metrics:
                records = map(partial(scorer.add, run=run, cell=cell), records)
        scores[cell.digest] = _score(records, cell, task, metrics, writer)
        writers.append(writer)
    return _Rescored(run=run, tasks=tasks, metrics=scores, records=writers)


def _writer(run: Run, cell: CellResult, path: Path) -> RecordWriter:
    return RecordWriter(path, model=run.manifest.model_name, task=cell.task, language=cell.language)


def _score(
    records: Iterator[ItemRecord],
    cell: CellResult,
    task: TaskSummary,
    metrics: Sequence[Metric],
    writer: RecordWriter,
) -> Mapping[str, MetricScore]:
    """Return the metrics of a cell, whose records are read, and written with their new scores, chunk by chunk."""
    scorer = CellScorer(metrics, task_context(task, cell.language), task=cell.task)
    while chunk := list(itertools.islice(records, CHUNK)):
        contributions = scorer.add(chunk)
        columns = zip(*contributions.values(), strict=True) if contributions else itertools.repeat(())
        writer.add(
            [
                replace(record, scores=dict(zip(contributions, next(columns), strict=True)))
                if record.reference is not None
                else replace(record, scores={})
                for record in chunk
            ]
        )
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


def relabel(
    path: Path, gold: GoldFile, output: Path, registry: Registry, further: tuple[str, ...] = ()
) -> None:
    """Write a run whose items are scored with corrected labels; the run itself stays as it is.

    Args:
        path: The run.
        gold: The corrected labels.
        output: The new run folder, which appears whole or not at all; it has no journal.
        registry: Has the metrics.
        further: Names of metrics besides the run's own.

    Raises:
        UsageError: Where the gold fits no task of the run, the run has a corrected gold already, or the output
            cannot be written.
        DataError: For labels of items that a cell does not have, and for broken records.
    """
    run = Run(path)
    runs = with_baselines(run)
    _check(runs, gold)
    Run.at(output).check_usable()
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as folder:
            relabelled = Path(folder) / output.name
            for source in runs:
                _write_relabelled(source, gold, relabelled / source.path.relative_to(run.path), output.name)
            rescore(relabelled, registry, further)
            if output.is_dir():
                output.rmdir()  # an empty one; a folder that holds something is an error
            relabelled.rename(output)
    except OSError as error:
        raise FileNotWrittenError(output, error) from error


def _check(runs: list[Run], gold: GoldFile) -> None:
    tasks = {name: task for run in runs for name, task in run.manifest.tasks.items()}
    labelled = sorted(gold.tasks & set(tasks))
    if not labelled:
        raise UsageError(
            f"The gold {str(gold.path)!r} labels items of {', '.join(sorted(gold.tasks))}; the run has "
            f"{', '.join(sorted(tasks))}."
        )
    if any(cell.view.get("split") == "validation" for run in runs for cell in run.cells):
        raise UsageError(
            f"The gold {str(gold.path)!r} has labels of test items, and the run {str(runs[0].path)!r} scored dev items."
        )
    for task in labelled:
        gold.check_labels(task, tasks[task].kind, tasks[task].labels)
    gold_name = next((cell.view[VIEW] for run in runs for cell in run.cells if VIEW in cell.view), None)
    if gold_name is not None:
        raise UsageError(
            f"The run {str(runs[0].path)!r} is scored with the gold {gold_name!r} already.",
            hint="Take the run that it was made from.",
        )


def _write_relabelled(run: Run, gold: GoldFile, folder: Path, name: str) -> None:
    target = Run.at(folder)
    folder.mkdir(parents=True)
    if (run.path / "failures").is_dir():
        shutil.copytree(run.path / "failures", folder / "failures")
    renamed: dict[str, Any] = {}
    for planned in run.manifest.cells:
        identity = {key: value for key, value in planned.items() if key != "digest"}
        if planned["task"] in gold.tasks:
            identity["view"] = _view(planned.get("view", {}), gold)
        renamed[planned["digest"]] = {**identity, "digest": identity_digest(identity)}
    cells = [_relabelled_cell(run, cell, gold, target, renamed) for cell in run.cells]
    made_from = {"run": str(run.path.absolute()), "gold": str(gold.path.absolute()), "name": gold.name}
    target.write_manifest(run.manifest.changed(cells=list(renamed.values()), relabelled=made_from))
    labels: dict[str, dict[str, int]] = {}
    for cell in cells:
        if cell.gold is not None:
            by_language = labels.setdefault(cell.task, {})
            named = cell.gold["relabelled"] + cell.gold.get("removed", 0)
            by_language[cell.language] = max(by_language.get(cell.language, 0), named)
    notes = [gold_note(task, gold.name, by_language) for task, by_language in labels.items()]
    head = run.results.run.changed(id=name)
    target.write_results(run.results.changed(run=head, cells=cells, notes=[*run.results.notes, *notes]))


def _view(view: Mapping[str, str], gold: GoldFile) -> dict[str, str]:
    return dict(sorted({**view, VIEW: gold.name}.items()))


def _relabelled_cell(
    run: Run, cell: CellResult, gold: GoldFile, target: Run, renamed: Mapping[str, Mapping[str, Any]]
) -> CellResult:
    corrected = cell.task in gold.tasks
    new = cell.changed(view=_view(cell.view, gold)) if corrected else cell
    if not cell.digest:
        return new
    new = new.changed(digest=renamed[cell.digest]["digest"])
    if cell.status != "ok":
        return new
    path = target.records_of(new)
    if not corrected:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(run.records_of(cell), path)
        return new
    cell_gold = gold.of(cell.task, cell.language, cell.view)
    counts = GoldCounts()
    ids: set[str] = set()
    flags: Counter[str] = Counter()
    with _writer(run, cell, path) as writer:
        records = _corrected(run.records(cell), cell_gold, counts, ids, flags)
        while chunk := list(itertools.islice(records, CHUNK)):
            writer.add(chunk)
        writer.close()
    if cell.size in {None, cell.n}:  # items beyond a limit are unknown
        cell_gold.check_known(ids, f"{cell.task}:{cell.language}")
    if counts.removed:
        fewer = {name: getattr(new, name) - flags[name] for name in FLAGGED}
        size = None if new.size is None else new.size - counts.removed
        new = new.changed(**fewer, n=new.n - counts.removed, size=size)
    return new.changed(gold={"name": gold.name, **counts.to_json()})


def _corrected(
    records: Iterator[ItemRecord], gold: CellGold, counts: GoldCounts, ids: set[str], flags: Counter[str]
) -> Iterator[ItemRecord]:
    """Yield the records of items that are scored; `flags` counts those of the items that are taken out."""
    for record in records:
        ids.add(record.id)
        removed = counts.removed
        reference = gold.corrected(record.id, record.reference, counts)
        if counts.removed > removed:
            flags.update(name for name, flag in record.flags.items() if flag)
        else:
            yield replace(record, reference=reference)
