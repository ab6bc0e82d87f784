"""The manifest of a run: what is written when it begins, checked when it is resumed, and copied into its results."""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.data.records import CandidatePool
from harness.errors import DataError, UsageError
from harness.metrics.metric import MetricContext
from harness.planning.plan import Cell, Plan
from harness.planning.resolution import (
    READ_OTHERWISE,
    LockedDocument,
    LockedSplit,
    Resolution,
    read_resolution,
    resolve_plan,
)
from harness.planning.run_config import RunConfig, settings
from harness.registry.plugin import installed_version
from harness.registry.registry import Registry
from harness.specs.catalog import Catalog
from harness.specs.schema import SuiteSpec, TaskSpec
from harness.storage.results import CellResult, DamagedRunError, Manifest, SuiteSummary, TaskSummary
from harness.storage.run_folder import FittedModel, repairable_cells, reuse_hint


def new_manifest(
    config: RunConfig, plan: Plan, registry: Registry, catalog: Catalog, created: str
) -> dict[str, Any]:
    """Return the manifest of a new run."""
    return {
        "schema": 1,
        "created": created,
        "command": sys.argv,
        "config": config.to_json(),
        "model": str(plan.model.reference),
        "name": plan.model.name,
        "adapter": plan.model.description.adapter,
        "options": plan.model.options.model_dump(mode="json"),
        "suites": (suites := suite_summaries(plan)),
        "published": published_documents(catalog, suites, {cell.spec.task for cell in plan.cells})
        if config.with_published
        else [],
        **planned_entries(plan, resolve_plan(plan, catalog).model_dump(mode="json")),
        "resumed": [],
        "versions": {
            name: installed_version(name)
            for name in ("multilingual-harness", "numpy", "torch", "transformers")
        },
        "plugins": {item.name: f"{item.distribution} {item.version}" for item in registry.plugins.loaded},
        "code": code_versions(plan, registry),
        "hardware": {
            "machine": platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
            "host": socket.gethostname(),
        },
    }


CODE_HOOKS = tuple(
    f"harness_register_{sort}" for sort in ("kinds", "methods", "metrics", "readers", "task_sources")
)
"""Hooks of plugins whose code scores, renders, reads or parses."""


def code_versions(plan: Plan, registry: Registry) -> dict[str, str]:
    """Return versions of others' code that decides scores: of plugins, and of the packages of metrics.

    The cells of a run share them: a metric of another version is another metric under its name.
    """
    versions = {f"plugin {name!r}": code for name, code in registry.plugins.code_versions(CODE_HOOKS).items()}
    for cell in plan.cells:
        context = MetricContext(
            language=cell.text_language.code, labels=cell.spec.label_names, options=cell.spec.metric_options
        )
        for metric in map(registry.metrics.get, cell.spec.metrics):
            if metric.signature is not None and (metric.missing is None or metric.missing() is None):
                versions[f"metric {metric.name!r} in {cell.language.code!r}"] = metric.signature(context)
    return versions


def planned_entries(plan: Plan, resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a manifest on the plan."""
    specs = {cell.spec.task: cell.spec for cell in plan.cells}
    return {
        "tasks": task_summaries(plan),
        "specs": {name: spec.model_dump(mode="json", exclude_defaults=True) for name, spec in specs.items()},
        "cells": [{**cell.identity(), "digest": cell.digest} for cell in plan.cells],
        "resolved": resolved,
        "fits": [fit.title for fit in plan.fits],
        "notes": list(plan.notes),
    }


def published_documents(
    catalog: Catalog, suites: Sequence[SuiteSummary], tasks: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return the documents of the systems that were published on a run's suites, and on its tasks that are in none."""
    specs = [spec for suite in suites for spec in catalog.published_for(suite.suite)]
    names, unlisted = (
        {suite.suite for suite in suites},
        set(tasks).difference(*(suite.tasks for suite in suites)),
    )
    if unlisted:
        specs += [
            spec
            for spec in catalog.published_for()
            if spec.suite not in names and not unlisted.isdisjoint(spec.scores)
        ]
    return [spec.model_dump(mode="json") for spec in specs]


def read_configuration_of(manifest: Manifest, folder: Path) -> RunConfig:
    """Return the configuration that a run started with; its output is `folder`, its place now."""
    _require(manifest, folder, "config", "versions")
    recorded, declared = manifest.config, settings()
    unknown = sorted(set(recorded) - set(declared))
    if unknown:
        raise UsageError(
            f"The run {str(folder)!r} was started with {unknown[0]!r}, which this version does not know.",
            hint=f"Resume it with version {manifest.versions.get('multilingual-harness')}.",
        )
    return RunConfig.read({**recorded, "output": folder}, f"the run {str(folder)!r}")


def check_unchanged(
    manifest: Manifest,
    plan: Plan,
    catalog: Catalog,
    version: str | None,
    code: Mapping[str, str],
    path: Path,
) -> Resolution:
    """Raise where a resumed run would use other data, specs or code than it started with.

    Cells that failed before a model was asked are free to change: what made them fail can be fixed.

    Args:
        manifest: What the run in `path` wrote down when it began.
        plan: What it would continue with.
        catalog: The documents of the plan.
        version: Of the harness.
        code: Versions of other code that scores, renders, reads or parses; see `code_versions`.
        path: The run folder.

    Returns:
        What all cells of the plan read now.

    Raises:
        DataError: For other data, with both digests, and a damaged manifest.
        UsageError: For anything else.
    """
    _require(manifest, path, "versions", "resolved")
    hint, started = reuse_hint(path), manifest.versions.get("multilingual-harness")
    if started != version:
        raise UsageError(
            f"The run was started with version {started} of the harness, this is version {version}.",
            hint=hint,
        )
    _check_code(manifest.code, code, hint)
    repairable = repairable_cells(path)
    free = {_key(cell) for cell in manifest.cells if cell["digest"] in repairable}
    fixed = {_key(cell) for cell in manifest.cells if cell["digest"] not in repairable}
    guarded = replace(plan, cells=tuple(cell for cell in plan.cells if _key(cell.identity()) in fixed))
    _check_same(read_resolution(manifest.resolved), resolve_plan(guarded, catalog), hint)
    replaceable = free - fixed
    planned, recorded = {cell.digest for cell in plan.cells}, {cell["digest"] for cell in manifest.cells}
    lost = [
        f"{cell['task']}:{cell['language']}"
        for cell in manifest.cells
        if _key(cell) not in replaceable and cell["digest"] not in planned
    ]
    added = [
        cell.title
        for cell in plan.cells
        if cell.digest not in recorded and _key(cell.identity()) not in replaceable
    ]
    if lost or added:
        raise UsageError(
            f"The plan is not the one that the run began with, first at {[*lost, *added][0]}: a spec, a prompt, a "
            "recipe or the data that are found changed.",
            hint=hint,
        )
    return resolve_plan(plan, catalog)


def _require(manifest: Manifest, folder: Path, *names: str) -> None:
    for name in names:
        if not manifest.has(name):
            raise DamagedRunError(
                f"The run {str(folder)!r} is damaged: its manifest has no {name!r}.", hint=reuse_hint(folder)
            )


def _key(identity: Mapping[str, Any]) -> tuple[str, str]:
    """Return the key of cells that are guarded together: one document describes them."""
    return (identity["task"], identity["language"])


def _check_code(before: Mapping[str, str], now: Mapping[str, str], hint: str) -> None:
    """Raise `UsageError` for other code that scores, renders, reads or parses; what is not used any more is free."""
    for name, version in before.items():
        if (current := now.get(name, version)) != version:
            raise UsageError(
                f"The {name} changed since the run began: {version} then, {current} now.",
                hint=f"Install the former version. {hint}",
            )


def _check_same(before: Resolution, now: Resolution, hint: str) -> None:
    """Raise `DataError` for other files, `UsageError` for a changed document and files that are read in another way."""
    # A changed spec may be why data differ, which says more.
    for here, there in sorted(now.diff(before), key=lambda pair: isinstance(pair[0], LockedDocument)):
        if there is None:
            continue
        reason = here.difference(there, "the run")
        files = isinstance(here, LockedSplit) and reason != READ_OTHERWISE
        raise (DataError if files else UsageError)(
            f"The {here.subject} changed since the run began: {reason} (digest {there.digest} then, "
            f"{here.digest} now).",
            hint=f"Put the former {'files' if files else 'document'} back. {hint}",
        )


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
