"""`evaluate`: what ``harness eval`` does, as a Python function."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.adapters import ModelReference
from harness.data.resolve import DataOptions
from harness.data.sources import DataFinder
from harness.discovery import discover
from harness.documents import suite_summaries, task_summaries
from harness.errors import UnknownNameError, UsageError
from harness.fitting import FitStore, cache_folder
from harness.metrics.external import FAMILY, evaluate_family
from harness.plan import Model, Plan, RunConfig, refuse_empty
from harness.planning import make_plan, resolve_model
from harness.progress import Progress, SilentProgress
from harness.registry import Registry
from harness.results import Run, RunFolder
from harness.running import Runner
from harness.specs.catalog import Catalog

__all__ = [
    "Prepared",
    "Session",
    "data_options",
    "evaluate",
    "execute",
    "open_session",
    "prepare",
    "published_documents",
    "refuse_output",
]

SEVERAL = ("protocols", "train_languages", "variants")
"""Settings of `evaluate` that hold several names; one name may be given as a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What one command works with."""

    registry: Registry
    catalog: Catalog


def open_session(tasks_from: Sequence[Path] = (), *, allow_code: bool = False) -> Session:
    """Return the plugins and specs of this environment; `tasks_from` adds files or folders of specs.

    `allow_code` lets metrics that are programs of others run (``evaluate:NAME``).
    """
    registry = Registry(discover(), metric_families={FAMILY: evaluate_family(allow_code=allow_code)})
    models = {kind.name: kind.spec_model for kind in registry.kinds}
    catalog = Catalog(registry.task_spec_folders(), kind_models=models, extra_paths=tasks_from)
    return Session(registry=registry, catalog=catalog)


def data_options(data: Sequence[str | Path]) -> DataOptions:
    """Return where data are looked for: ``hub`` (default), ``sample``, or folders; ``$HARNESS_DATA`` adds folders.

    Raises `UsageError` for a folder that is not there, and for ``hub`` or ``sample`` beside anything else.
    """
    variable = os.environ.get("HARNESS_DATA", "").split(os.pathsep)
    given = [str(item) for item in data] or [item for item in variable if item]
    modes = [item for item in given if item in {"hub", "sample"}]
    if modes and len(given) > 1:
        raise UsageError(f"--data {modes[0]} stands alone; it was given together with {len(given) - 1} more.")
    if modes == ["sample"]:
        return DataOptions(mode="sample")
    if not given or modes == ["hub"]:
        return DataOptions(mode="hub")
    for folder in given:
        if not Path(folder).is_dir():
            raise UsageError(
                f"The data folder {folder!r} does not exist.",
                hint="Give --data hub, --data sample, or a folder that holds the published files.",
            )
    return DataOptions(mode="local", folders=tuple(Path(item) for item in given))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Plans that are ready to run: the model's own, and those of the baselines beside it."""

    session: Session
    finder: DataFinder
    plan: Plan
    baselines: tuple[Plan, ...]


def prepare(config: RunConfig, session: Session | None = None) -> Prepared:
    """Return the plans of a configuration; loads no model and trains nothing."""
    session = session or open_session(config.tasks_from, allow_code=config.allow_code)
    finder = DataFinder(config.data, session.registry, cache_folder() / "data")
    model = resolve_model(session.registry, config.model, config.options)
    plan = make_plan(config, session.registry, session.catalog, finder, model)
    baselines = []
    if config.with_baselines:
        plain = replace(config, options={}, protocols=(), method=None)
        for baseline in _baselines(session.registry, model):
            baselines.append(make_plan(plain, session.registry, session.catalog, finder, baseline))
    return Prepared(session=session, finder=finder, plan=plan, baselines=tuple(baselines))


def refuse_output(config: RunConfig) -> None:
    """Raise `UsageError` where the run folder could not be written, before data are looked for or downloaded."""
    RunFolder(config.output or Path("runs") / "next").refuse_unusable()


def _baselines(registry: Registry, model: Model) -> list[Model]:
    names = [name for entry in registry.adapters for name in entry.baselines]
    return [resolve_model(registry, name, {}) for name in names if name != str(model.reference)]


def execute(config: RunConfig, prepared: Prepared, progress: Progress, *, created: str | None = None) -> Path:
    """Run prepared plans and return the run folder."""
    refuse_empty(prepared.plan)
    _make_metrics_ready(prepared)
    created = created or datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    path = config.output or Path("runs") / _run_name(prepared.plan, created)
    _run_one(config, prepared, prepared.plan, RunFolder(path), progress, created)
    for plan in prepared.baselines:
        if plan.cells:
            progress.announce(f"Now the baseline {plan.model.reference}.")
            folder = RunFolder(path / "baselines" / _safe(plan.model.reference.ref))
            _run_one(config, prepared, plan, folder, progress, created)
    return path


def _make_metrics_ready(prepared: Prepared) -> None:
    """Raise `HarnessError` for a metric that cannot be computed here, before a model is trained or asked."""
    metrics = prepared.session.registry.metrics
    for name in sorted({name for cell in prepared.plan.cells for name in cell.spec.metrics}):
        metric = metrics.get(name)
        if metric.ready is not None:
            metric.ready()


def _run_one(
    config: RunConfig, prepared: Prepared, plan: Plan, folder: RunFolder, progress: Progress, created: str
) -> None:
    folder.create()
    registry = prepared.session.registry
    folder.write_manifest(_manifest(config, plan, registry, prepared.session.catalog, created))
    store = FitStore(cache_folder(), prepared.finder, progress)
    runner = Runner(plan, registry, prepared.finder, store, folder, progress)
    header = {
        "id": folder.path.name,
        "created": created,
        "harness": _version("multilingual-harness"),
        "data": config.data.mode,
    }
    runner.run(header, limit=config.limit)


def evaluate(
    tasks: str | Sequence[str],
    model: str,
    *,
    options: Mapping[str, Any] | None = None,
    languages: Sequence[str] | None = None,
    data: str | Path | Sequence[str | Path] = "hub",
    progress: Progress | None = None,
    **settings: Any,
) -> Run:
    """Evaluate a model and return the finished run; does what ``harness eval`` does.

    Args:
        tasks: Names of tasks or suites, globs, or ``xnli:sw+hi``.
        model: ``ADAPTER:NAME_OR_PATH``, such as ``hf:xlm-roberta-base`` or ``baseline:char-ngram``.
        options: Options of the adapter.
        languages: Codes to restrict all tasks to.
        data: ``hub``, ``sample``, or folders that hold the published files.
        progress: What is told while the run goes on; nothing by default.
        settings: Further fields of `harness.planning.RunConfig`: ``limit=100``, ``seeds=(1, 2)``, ...

    Raises:
        UsageError: For names that nobody knows and for a plan without cells. A failed cell does not raise: it
            is in the run's cells with its reason.
    """
    places = [data] if isinstance(data, str | Path) else list(data)
    for name in settings:
        if name not in RunConfig.__slots__:
            raise UnknownNameError("setting of evaluate", name, RunConfig.__slots__)
    if settings.get("output") is not None:
        settings["output"] = Path(settings["output"])
    settings |= {name: tuple(value) for name, value in settings.items() if isinstance(value, list)}
    settings |= {name: (settings[name],) for name in SEVERAL if isinstance(settings.get(name), str)}
    config = RunConfig(
        tasks=(tasks,) if isinstance(tasks, str) else tuple(tasks),
        model=model,
        options={key: str(value) for key, value in (options or {}).items()},
        languages=None if languages is None else tuple(languages),
        data=data_options(places),
        **settings,
    )
    refuse_output(config)
    return Run(execute(config, prepare(config), progress or SilentProgress()))


def published_documents(catalog: Catalog, suites: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the documents of the systems that were published on a run's suites."""
    return [
        spec.model_dump(mode="json") for suite in suites for spec in catalog.published_for(suite["suite"])
    ]


def _manifest(
    config: RunConfig, plan: Plan, registry: Registry, catalog: Catalog, created: str
) -> dict[str, Any]:
    specs = {cell.spec.task: cell.spec for cell in plan.cells}
    return {
        "schema": 1,
        "created": created,
        "command": sys.argv,
        "config": json.loads(json.dumps(_plain(config), default=str)),
        "model": str(plan.model.reference),
        "adapter": plan.model.description.adapter,
        "options": plan.model.options.model_dump(mode="json"),
        "tasks": task_summaries(plan),
        "suites": (suites := suite_summaries(plan)),
        "published": published_documents(catalog, suites) if config.with_published else [],
        "specs": {name: spec.model_dump(mode="json", exclude_defaults=True) for name, spec in specs.items()},
        "cells": [{**cell.identity(), "digest": cell.digest} for cell in plan.cells],
        "fits": [fit.title for fit in plan.fits],
        "versions": {
            name: _version(name) for name in ("multilingual-harness", "numpy", "torch", "transformers")
        },
        "plugins": {item.name: f"{item.distribution} {item.version}" for item in registry.plugins.loaded},
        "hardware": {
            "machine": platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
        },
    }


def _plain(config: RunConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in config.__slots__ if name != "data"} | {
        "data": {"mode": config.data.mode, "folders": [str(folder) for folder in config.data.folders]}
    }


def _run_name(plan: Plan, created: str) -> str:
    stamp = re.sub(r"[^0-9]", "", created)[:14]
    reference: ModelReference = plan.model.reference
    base = f"{stamp}-{_safe(reference.ref.rstrip('/').rsplit('/', 1)[-1])}"
    name, number = base, 2
    while (Path("runs") / name).exists():
        name, number = f"{base}-{number}", number + 1
    return name


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-") or "model"


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
