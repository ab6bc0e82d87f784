"""Entries of ``manifest.json`` and ``results.json`` on tasks, suites, pools and releases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from harness.data.pool import CandidatePool
from harness.planning.plan import Cell, Plan
from harness.specs.schema import SuiteSpec, TaskSpec
from harness.storage.results import CellResult, SuiteSummary, TaskSummary
from harness.storage.run_folder import FittedModel


def task_summaries(plan: Plan) -> dict[str, TaskSummary]:
    """Return the summary of every task of a plan for aggregation and rescoring; kept in the manifest."""
    languages = {cell.language.code: (cell.language.family, cell.language.script) for cell in plan.cells}
    return {cell.spec.task: _task_summary(cell.spec, languages, plan) for cell in plan.cells}


def further_metrics_kept(
    planned: Mapping[str, TaskSummary], kept: Mapping[str, TaskSummary]
) -> dict[str, TaskSummary]:
    """Return the tasks of a plan with the metrics that ``harness score`` has added to them in a run."""
    merged = dict(planned)
    for name, task in planned.items():
        added = [
            metric for metric in (kept[name].metrics if name in kept else ()) if metric not in task.metrics
        ]
        if added:
            merged[name] = task.changed(
                metrics=[*task.metrics, *added],
                shown=[*(task.shown or task.headline), *added],
                metric_options={**kept[name].metric_options, **task.metric_options},
            )
    return merged


def further_metrics_notes(
    cells: Iterable[CellResult], plan: Plan, tasks: Mapping[str, TaskSummary]
) -> list[str]:
    """Return a note on each metric that ``harness score`` has added, where cells were run after that."""
    metrics_of = {cell.spec.task: cell.spec.metrics for cell in plan.cells}
    late = Counter(
        metric
        for cell in cells
        if cell.is_scored
        for metric in tasks[cell.task].metrics
        if metric not in metrics_of[cell.task] and metric not in cell.metrics
    )
    return [
        f"{metric}: {count} cell{'s were' if count > 1 else ' was'} run after harness score had added it, and "
        f"{'have' if count > 1 else 'has'} no score by it; run harness score again"
        for metric, count in late.items()
    ]


def suite_summaries(plan: Plan) -> list[SuiteSummary]:
    """Return the summaries of the requested suites for aggregation; kept in the manifest."""
    return [
        SuiteSummary(
            suite=suite.suite,
            protocol=suite.protocol,
            tasks=list(suite.tasks),
            categories={name: list(tasks) for name, tasks in suite.categories.items()},
            languages={
                task: list(suite.languages.get(task) or plan.published.get(task, ())) for task in suite.tasks
            },
            **_special(suite, plan),
        )
        for suite in plan.suites
    ]


def _special(suite: SuiteSpec, plan: Plan) -> dict[str, Any]:
    """Return the fields that only some suites have."""
    excluded = {
        task: [code for code in plan.published.get(task, ()) if code not in codes]
        for task, codes in suite.languages.items()
    }
    fields: dict[str, Any] = {
        "views": {task: dict(view) for task, view in suite.views.items()},
        "metrics": {task: list(names) for task, names in suite.metrics.items()},
        "others": {task: codes for task, codes in excluded.items() if codes},
    }
    return {name: value for name, value in fields.items() if value}


def _task_summary(spec: TaskSpec, languages: dict[str, tuple[str, str]], plan: Plan) -> TaskSummary:
    described = {
        code: entry.name for code, entry in spec.languages.items() if entry is not None and entry.name
    }
    # Only tasks that fragments extend, or that describe languages themselves, have these.
    optional: dict[str, Any] = {
        "unpaired": [code for code in spec.unpaired if code in languages],
        "added": dict(plan.added.get(spec.task, {})),
        "names": described,
        "answer_language": spec.answer_language,
    }
    return TaskSummary(
        kind=spec.kind,
        metrics=list(spec.metrics),
        headline=list(spec.headline),
        metric_options=dict(spec.metric_options),
        labels=list(spec.label_names),
        parallel=spec.parallel,
        **{name: value for name, value in optional.items() if value},
        chance=spec.chance_level,
        source=spec.gap_source,
        axes=list(spec.axes),
        human=dict(plan.human.get(spec.task, {})),
        published_languages=list(plan.published.get(spec.task, ())),
        languages=languages,
    )


def cell_head(cell: Cell, fitted: FittedModel | None) -> dict[str, Any]:
    """Return the fields of a cell's result besides its numbers; its model may not be fitted yet."""
    prompt = cell.prompt
    return {
        "task": cell.spec.task,
        "version": cell.spec.version,
        "language": cell.language.code,
        "split": cell.test.files.split_used,
        "stands_in": cell.test.files.stands_in,
        "provenance": cell.provenance,
        "protocol": cell.pairing.protocol,
        "fit": "none" if cell.fit is None else (None if fitted is None else fitted.digest),
        "method": cell.pairing.method.name,
        "view": dict(sorted(cell.view.items())),
        "seed": cell.seed,
        "prompt": None if prompt is None else prompt.to_json(prompt.compiled(prompt.instruction)),
        "digest": cell.digest,
        "data": cell.test.to_json(),
        **({} if cell.learning is None else {"learning": cell.learning.to_json()}),
    }


def release_summary(cell: Cell, size: int) -> dict[str, Any] | None:
    """Return which known release the file of a cell is, by its split and size.

    None where the task names none of this split for the language.
    """
    files = cell.test.files
    split = files.split_used if files.stands_in else "test"
    releases = cell.spec.known_releases(cell.language.code, split)
    if files.origin == "sample" or not releases:
        return None
    name = cell.spec.release_of(cell.language.code, size, split)
    if name is not None:
        return {"name": name, "note": cell.spec.releases[name].note}
    return {"name": None, "note": f"the number of items is that of no known release ({', '.join(releases)})"}


def pool_summary(pool: CandidatePool) -> dict[str, Any]:
    """Return the record of a candidate pool in the results."""
    return {
        "size": len(pool),
        "languages": list(pool.languages),
        "missing": list(pool.missing),
        "digest": pool.digest,
    }


def empty_result(status: str, reason: str) -> dict[str, Any]:
    """Return the numbers of a cell without scores."""
    return {
        "n": 0,
        "status": status,
        "reason": reason,
        "metrics": {},
        "truncated": 0,
        "unparsed": 0,
        "unfinished": 0,
        "seconds": 0.0,
    }
