"""The manifest of a run: its configuration, plan, versions and machine."""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from harness.metrics.metric import MetricContext
from harness.planning.plan import Plan
from harness.planning.resolution import resolve_plan
from harness.planning.run_config import RunConfig
from harness.registry.registry import Registry
from harness.registry.requirement import installed_version
from harness.running.summaries import suite_summaries, task_summaries
from harness.specs.catalog import Catalog
from harness.storage.results import SuiteSummary


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
