"""Runs prepared plans: makes or takes up the run folder, holds its lock, and ends in order when it is stopped."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.adapters import ModelReference
from harness.asking import Asker
from harness.documents import suite_summaries, task_summaries
from harness.errors import StorageError, UsageError
from harness.file_lock import FileLock
from harness.fitting import FitStore, cache_folder
from harness.interruption import Interrupted, Interruption
from harness.journal import Journal
from harness.locking import locked_model
from harness.plan import Plan, RunConfig, refuse_empty
from harness.preparing import LOCK, Prepared, in_use
from harness.processes import Crew
from harness.progress import Progress, SilentProgress
from harness.registry import Registry
from harness.resolution import resolve_plan
from harness.results import Run, RunFolder
from harness.resuming import refuse_changes
from harness.run_state import RunState
from harness.running import Runner
from harness.sharding import shard_summary
from harness.specs.catalog import Catalog
from harness.translation_guards import translations_told

__all__ = ["Execution", "execute", "published_documents"]

LOCK_PATIENCE = 5.0
"""Seconds that a killed run's other processes may take to notice that it is gone."""


def execute(
    config: RunConfig,
    prepared: Prepared,
    progress: Progress,
    *,
    created: str | None = None,
    crew: Crew | None = None,
    resume: bool = False,
) -> Path:
    """Run prepared plans and return the run folder.

    Args:
        config: What was asked for.
        prepared: The plans.
        progress: What is told while the run goes on, by the leading process.
        created: When the run began, by default now.
        crew: The processes that share the work.
        resume: Whether ``config.output`` is a run that is gone on with.

    Raises:
        UsageError: A run to reuse has no journal, or another command is using the folder.
        Interrupted: After Ctrl-C, with the command that goes on.
        StorageError: Where the run folder or the cache can no longer be written.
    """
    refuse_empty(prepared.plan)
    _make_metrics_ready(prepared)
    if not resume:
        # A run that ends because a package is missing would leave a folder that the same command refuses.
        prepared.plan.model.entry.make_ready()
    journals = [path for run in config.reuse for path in _journals(run)]
    crew = crew or Crew()
    created = crew.share(created or datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"))
    path = Path(crew.share(str(config.output or Path("runs") / _run_name(prepared.plan, created))))
    interruption = Interruption(progress.announce)
    execution = Execution(
        config=config,
        prepared=prepared,
        progress=progress if crew.leads else SilentProgress(),
        created=created,
        crew=crew,
        interruption=interruption,
        resume=resume,
        journals=journals,
    )
    go_on = f"Go on with: harness eval --resume {path}"
    try:
        with interruption.listening():
            execution.run(path)
    except KeyboardInterrupt as error:
        raise Interrupted(f"Stopped. All answers so far are kept. {go_on}") from error
    except StorageError as error:
        if "--resume" not in (error.hint or "") and (path / "manifest.json").is_file():
            error.hint = " ".join(filter(None, (error.hint, "All answers so far are kept.", go_on)))
        raise
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One command's run of a model and of the baselines beside it."""

    config: RunConfig
    prepared: Prepared
    progress: Progress
    created: str
    crew: Crew = field(default_factory=Crew)
    interruption: Interruption = field(default_factory=Interruption)
    resume: bool = False
    journals: Sequence[Path] = ()
    """Journals of other runs whose answers are taken over."""

    def run(self, path: Path) -> None:
        """Run everything below `path`, which no other command may use meanwhile."""
        lock = FileLock(path / LOCK)
        folder = RunFolder(path)
        with self.crew.step():
            if self.crew.leads:
                if not self.resume:
                    folder.create()
                if not lock.acquire(patience=LOCK_PATIENCE):
                    raise in_use(path, lock)
        try:
            self._run_one(self.prepared.plan, folder)
            for plan in self.prepared.baselines:
                if plan.cells:
                    self.progress.announce(f"Now the baseline {plan.model.reference}.")
                    self._run_one(plan, RunFolder(path / "baselines" / _safe(plan.model.reference.ref)))
        finally:
            lock.release()

    def _run_one(self, plan: Plan, folder: RunFolder) -> None:
        registry = self.prepared.session.registry
        with self.crew.step():
            manifest = self.crew.share(self._manifest(plan, folder) if self.crew.leads else None)
            if not (folder.path / "manifest.json").is_file():
                raise StorageError(
                    f"Process {self.crew.rank} does not see the run folder {str(folder.path)!r}.",
                    hint="Give --output a folder that all hosts share.",
                )
            journal = Journal.open(folder.path / "journal", self.crew.rank, reuse=self.journals)
        try:
            self._tell_dropped(journal)
            asker = Asker(crew=self.crew, journal=journal, interruption=self.interruption)
            store = FitStore(
                cache_folder(), self.prepared.finder, self.progress, self.crew, self.interruption
            )
            state = RunState(folder, manifest, self._check_model(plan))
            runner = Runner(plan, registry, self.prepared.finder, store, folder, self.progress, asker, state)
            header = {
                "id": folder.path.name,
                "created": manifest["created"],
                "harness": _version("multilingual-harness"),
                "data": self.config.data.mode,
                "processes": self.crew.count,
                "resumed": len(manifest["resumed"]),
            }
            self._translate(plan, state, runner)
            with self.crew.step():
                runner.run(header, limit=self.config.limit)
        finally:
            journal.close()

    def _translate(self, plan: Plan, state: RunState, runner: Runner) -> None:
        """Translate what the plan's variants and training sets lack, before a model takes the memory.

        The leading process does; the others are told by what, and find everything in the store.
        """
        found = {
            data.digest(): data
            for cell in plan.cells
            for data in (
                cell.test,
                *(own for stage in (cell.fit.stages if cell.fit else ()) for _, own in stage.train),
            )
            if data.change is not None
        }
        if not found:
            return
        finder = self.prepared.finder
        with self.crew.step():
            if self.crew.leads:
                finder.translate(found.values(), self.progress)
                runner.add_notes(translations_told(finder.translations))
            finder.translations.adopt(self.crew.share(finder.translations.engines()))
            state.keep_translators(finder.translations.engines(), self.crew)

    def _check_model(self, plan: Plan) -> Callable[[Mapping[str, str]], None]:
        """Return what refuses a model that is not the locked one; baselines are no subject of locks."""
        locked = self.prepared.locked
        if locked is None or plan is not self.prepared.plan:
            return lambda _: None
        return partial(locked_model, locked, plan.model.description)

    def _manifest(self, plan: Plan, folder: RunFolder) -> dict[str, Any]:
        """Return the manifest of a run, a new one or that of the run that is gone on with."""
        registry, catalog = self.prepared.session.registry, self.prepared.session.catalog
        if self.resume and (folder.path / "manifest.json").is_file():
            manifest = Run.read_manifest(folder.path)
            for leftover in folder.path.glob("records/*/*/.*"):
                leftover.unlink(missing_ok=True)  # what a kill left half written
            version = _version("multilingual-harness")
            resolved = refuse_changes(manifest, plan, catalog, version, folder.path).model_dump(mode="json")
            if resolved != manifest["resolved"]:
                manifest |= _planned(plan, resolved) | self._shard_summary(plan)
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            manifest["resumed"] = [*manifest["resumed"], now]
        else:
            folder.create()
            manifest = _manifest(self.config, plan, registry, catalog, self.created)
            manifest |= self._shard_summary(plan)
        folder.write_manifest(manifest)
        return manifest

    def _shard_summary(self, plan: Plan) -> dict[str, Any]:
        shard = self.prepared.shard
        return {} if shard is None else shard_summary(self.prepared.whole[id(plan)], shard)

    def _tell_dropped(self, journal: Journal) -> None:
        if journal.dropped:
            places = "place is" if journal.dropped == 1 else "places are"
            self.progress.announce(
                f"{journal.dropped} {places} damaged in the journal; what stood there is asked again."
            )


def _journals(run: Path) -> list[Path]:
    """Return the journals of a run and of the baselines beside it; raises `UsageError` where there is none."""
    folders = [path for path in (run / "journal", *sorted(run.glob("baselines/*/journal"))) if path.is_dir()]
    if not folders:
        raise UsageError(
            f"The folder {str(run)!r} has no journal, so no answers can be reused.",
            hint="--reuse takes run folders, as 'harness eval --output DIR' writes them.",
        )
    return folders


def _make_metrics_ready(prepared: Prepared) -> None:
    """Raise `HarnessError` for a metric that cannot be computed here, before a model is trained or asked."""
    metrics = prepared.session.registry.metrics
    for name in sorted({name for cell in prepared.plan.cells for name in cell.spec.metrics}):
        metric = metrics.get(name)
        if metric.ready is not None:
            metric.ready()


def published_documents(catalog: Catalog, suites: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the documents of the systems that were published on a run's suites."""
    return [
        spec.model_dump(mode="json") for suite in suites for spec in catalog.published_for(suite["suite"])
    ]


def _manifest(
    config: RunConfig, plan: Plan, registry: Registry, catalog: Catalog, created: str
) -> dict[str, Any]:
    return {
        "schema": 1,
        "created": created,
        "command": sys.argv,
        "config": json.loads(json.dumps(_plain(config), default=str)),
        "model": str(plan.model.reference),
        "adapter": plan.model.description.adapter,
        "options": plan.model.options.model_dump(mode="json"),
        "suites": (suites := suite_summaries(plan)),
        "published": published_documents(catalog, suites) if config.with_published else [],
        **_planned(plan, resolve_plan(plan, catalog).model_dump(mode="json")),
        "resumed": [],
        "versions": {
            name: _version(name) for name in ("multilingual-harness", "numpy", "torch", "transformers")
        },
        "plugins": {item.name: f"{item.distribution} {item.version}" for item in registry.plugins.loaded},
        "hardware": {
            "machine": platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
            "host": socket.gethostname(),
        },
    }


def _planned(plan: Plan, resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a manifest says of the plan."""
    specs = {cell.spec.task: cell.spec for cell in plan.cells}
    return {
        "tasks": task_summaries(plan),
        "specs": {name: spec.model_dump(mode="json", exclude_defaults=True) for name, spec in specs.items()},
        "cells": [{**cell.identity(), "digest": cell.digest} for cell in plan.cells],
        "resolved": resolved,
        "fits": [fit.title for fit in plan.fits],
    }


def _plain(config: RunConfig) -> dict[str, Any]:
    folders = [str(folder.absolute()) for folder in config.data.folders]
    return {name: getattr(config, name) for name in config.__slots__ if name != "data"} | {
        "data": {"mode": config.data.mode, "folders": folders},
        "tasks_from": [str(path.absolute()) for path in config.tasks_from],
        "reuse": [str(path.absolute()) for path in config.reuse],
        "locked": None if config.locked is None else str(config.locked.absolute()),
        "gold": None if config.gold is None else str(config.gold.absolute()),
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
