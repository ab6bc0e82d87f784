"""Everything that a run needs before a model is loaded: plugins, specs, data, and the plans of model and baselines."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.checks.spec_checks import document_problems
from harness.data.sources import DataFinder
from harness.errors import UsageError
from harness.metrics.external import FAMILY, evaluate_family
from harness.planning.lock_file import LockFile, check_locked, read_lock
from harness.planning.plan import Model, Plan
from harness.planning.planner import make_plan, resolve_model
from harness.planning.run_config import RunConfig
from harness.planning.sampling import check_budget
from harness.planning.shards import parse_shard, take_shard
from harness.planning.unused_options import unused_option_notes
from harness.registry.discovery import discover
from harness.registry.registry import Registry
from harness.running.gold_labels import apply_gold
from harness.running.processes import ProcessGroup
from harness.specs.catalog import Catalog
from harness.storage.files import cache_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The plugins, documents and data of one command."""

    registry: Registry
    catalog: Catalog


def open_session(tasks_from: Sequence[Path] = (), *, allow_code: bool = False) -> Session:
    """Return the plugins and specs of this environment; `tasks_from` adds files or folders of specs.

    `allow_code` lets metrics that are programs of others run (``evaluate:NAME``).
    """
    plugins = discover()
    registry = Registry(plugins, metric_families={FAMILY: evaluate_family(allow_code=allow_code)})
    models = {kind.name: kind.spec_model for kind in registry.kinds}
    folders, sources = registry.task_spec_folders(), registry.task_sources
    catalog = Catalog(
        folders,
        kind_models=models,
        extra_paths=tasks_from,
        sources=sources,
        drop_shadowed_names=plugins.drop_shadowed_names,
    )
    catalog.problems_in = lambda entry: document_problems(entry, registry, catalog)
    registry.languages = catalog.languages
    return Session(registry=registry, catalog=catalog)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Plans that are ready to run: the model's own, and those of its baselines."""

    session: Session
    finder: DataFinder
    plan: Plan
    baselines: tuple[Plan, ...]
    locked: LockFile | None = None


def prepare(config: RunConfig, session: Session | None = None, *, model: Model | None = None) -> Prepared:
    """Return the plans of a configuration; loads no model and trains nothing.

    `model` is one that no name leads to, such as a network that is being trained.
    """
    session = session or open_session(config.tasks_from, allow_code=config.allow_code)
    locked = None if config.locked is None else read_lock(config.locked)
    pins = {} if locked is None else locked.pins
    for name in config.log:
        session.registry.trackers.get(name).load()
    finder = DataFinder(config.data, session.registry, cache_folder() / "data", pins=pins)
    model = model or resolve_model(session.registry.adapters, config.model, config.options)
    model = replace(model, chosen_name=config.name)
    plans = [make_plan(config, session.registry, session.catalog, finder, model)]
    if config.with_baselines:
        plain = replace(config, options={}, protocols=(), method=None)
        plans += [
            make_plan(plain, session.registry, session.catalog, finder, baseline)
            for baseline in _baselines(session.registry, model)
        ]
    for plan in plans:
        check_budget(config, plan)
    if config.gold is not None:
        plans = apply_gold(plans, config.gold, session.registry, finder)
    plans[0] = replace(plans[0], notes=(*plans[0].notes, *unused_option_notes(config, plans[0])))
    if locked is not None:
        check_locked(plans[0], locked, session.catalog)
    if config.shard is not None:
        shard = parse_shard(config.shard)
        plans = [take_shard(plan, shard, may_be_empty=number > 0) for number, plan in enumerate(plans)]
    return Prepared(session=session, finder=finder, plan=plans[0], baselines=tuple(plans[1:]), locked=locked)


def check_output_folder(config: RunConfig) -> None:
    """Raise `UsageError` where the run folder could not be written, before data are looked for or downloaded."""
    from harness.storage.run_folder import Run

    Run.at(config.output or Path("runs") / "next").check_new()


def _baselines(registry: Registry, model: Model) -> list[Model]:
    names = [name for entry in registry.adapters for name in entry.baselines]
    return [resolve_model(registry.adapters, name, {}) for name in names if name != str(model.reference)]


def prepare_together(config: RunConfig, session: Session, processes: ProcessGroup) -> Prepared:
    """Return the plans of a configuration in every process, the leading one first: it may download data.

    Raises `UsageError` where the processes come to different plans.
    """
    prepared: Prepared | None = None
    with processes.collective():
        if processes.is_main:
            prepared = prepare(config, session)
    with processes.collective():
        prepared = prepared or prepare(config, session)
        cells = [cell.digest for plan in (prepared.plan, *prepared.baselines) for cell in plan.cells]
        digest = hashlib.sha256(json.dumps(cells).encode()).hexdigest()
        if processes.share(digest) != digest:
            raise UsageError(
                f"Process {processes.rank} plans other cells than process 0.",
                hint="Let all hosts have the same plugins, specs and data.",
            )
    return prepared
