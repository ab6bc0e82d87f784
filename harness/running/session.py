"""Everything that a run needs before a model is loaded: plugins, specs, data, plans, and their downloads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from harness.checks.spec_checks import document_problems
from harness.data.gold import VIEW, GoldFile, gold_note, read_gold
from harness.data.sources import DataFinder
from harness.errors import AdapterError, HarnessError, UsageError
from harness.metrics.external import FAMILY, evaluate_family
from harness.models.options import options_model
from harness.planning.lock_file import LockFile, check_locked, read_lock
from harness.planning.plan import Cell, Model, Plan
from harness.planning.planner import make_plan, resolve_model
from harness.planning.resolution import cell_data
from harness.planning.run_config import RunConfig
from harness.planning.sampling import check_budget
from harness.planning.shards import parse_shard, take_shard
from harness.planning.unused_options import unused_option_notes
from harness.registry.discovery import discover
from harness.registry.registry import Registry
from harness.running.cell_reader import CellReader
from harness.running.processes import ProcessGroup
from harness.specs.catalog import Catalog
from harness.storage.files import cache_folder

_CONVERT = "convert_weights"
"""Option of adapters that convert pickled weights."""


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
        plans = _apply_gold(plans, config.gold, session.registry, finder)
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


def _apply_gold(plans: Sequence[Plan], path: Path, registry: Registry, finder: DataFinder) -> list[Plan]:
    """Return the plans with the corrected gold in the view of every cell whose task the file names.

    Raises:
        UsageError: For a file that cannot be read, names no task of the plans, or has labels that a task does not have.
        DataError: For labels of items that a cell does not have.
    """
    gold = read_gold(path)
    planned = {cell.spec.task for plan in plans for cell in plan.cells}
    if planned and not planned & gold.tasks:
        raise UsageError(
            f"The gold {str(path)!r} labels items of {', '.join(sorted(gold.tasks))}; the run has "
            f"{', '.join(sorted(planned))}."
        )
    reader = CellReader(registry, finder)
    return [_with_gold(plan, gold, reader) for plan in plans]


def _with_gold(plan: Plan, gold: GoldFile, reader: CellReader) -> Plan:
    cells = tuple(_corrected(cell, gold, reader) for cell in plan.cells)
    labels: dict[str, dict[str, int]] = {}
    for cell in cells:
        if cell.gold is not None:
            counts = labels.setdefault(cell.spec.task, {})
            counts[cell.language.code] = max(counts.get(cell.language.code, 0), len(cell.gold.labels))
    notes = [gold_note(task, gold.name, counts) for task, counts in labels.items()]
    return replace(plan, cells=cells, notes=(*plan.notes, *notes))


def _corrected(cell: Cell, gold: GoldFile, reader: CellReader) -> Cell:
    if cell.spec.task not in gold.tasks:
        return cell
    gold.check_labels(cell.spec.task, cell.spec.kind, cell.spec.label_names)
    cell_gold = gold.of(cell.spec.task, cell.language.code, cell.view)
    if cell_gold.labels:
        items = reader.stream(cell, limit=None, seed=0)
        cell_gold.check_known((example.id for example in items), cell.title)
    return replace(cell, view={**cell.view, VIEW: gold.name}, gold=cell_gold)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A model, or the files of one split in some languages, that are on this machine now."""

    what: Literal["model", "data"]
    name: str
    place: str
    """The folder of a model, where data came from, or why there is nothing to download."""
    files: tuple[Path, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(file.stat().st_size for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPlan:
    """Downloads for one model."""

    model: Fetched | None
    """None where the model could not be had."""
    plan: Plan | None = None
    """None without tasks, and where the model could not even be described."""
    reason: str = ""
    """Why the model is missing, with what to do."""


def fetch_plan(config: RunConfig, session: Session, *, convert: bool = False) -> FetchedPlan:
    """Return the downloads of a configuration: making the plan gets the data of every cell and training set.

    Without tasks it is the model alone. `convert` lets adapters convert pickled weights. Raises `UsageError` for what
    no plan could be made of whatever the model is.
    """
    plan: Plan | None = None
    try:
        if convert and _CONVERT in _option_names(config.model, session):
            config = replace(config, options={**config.options, _CONVERT: "true"})
        plan = prepare(config, session).plan if config.tasks else None
        model = plan.model if plan else _sound_model(config, session)
        folder = model.entry.fetch_model(model.description, model.options)
    except HarnessError as error:
        return FetchedPlan(model=None, plan=plan, reason=str(error))
    files = () if folder is None else tuple(sorted(file for file in folder.rglob("*") if file.is_file()))
    location = "nothing to download" if folder is None else str(folder)
    return FetchedPlan(
        model=Fetched(what="model", name=str(model.reference), place=location, files=files), plan=plan
    )


def _option_names(reference: str, session: Session) -> set[str]:
    scheme = reference.partition(":")[0]
    entries = [entry for entry in session.registry.adapters if entry.name == scheme]
    return {name for entry in entries for name in options_model(entry).model_fields}


def _sound_model(config: RunConfig, session: Session) -> Model:
    """Return a model without a plan; raises `AdapterError` for one that cannot be opened."""
    model = resolve_model(session.registry.adapters, config.model, config.options)
    if model.description.fault:
        raise AdapterError(model.description.fault)
    return model


def fetched_data(plans: Iterable[Plan]) -> list[Fetched]:
    """Return the data of plans, one entry for a split of a task from one origin, with the languages."""
    languages: dict[tuple[str, str, str], dict[str, None]] = {}
    files: dict[tuple[str, str, str], dict[Path, None]] = {}
    for plan in plans:
        for cell in plan.cells:
            for data, _ in cell_data(cell):
                key = (data.ref.owner, data.ref.split, data.files.origin)
                languages.setdefault(key, {})[data.ref.language] = None
                files.setdefault(key, {}).update(dict.fromkeys(map(Path, map(str, data.files.paths))))
    return [
        Fetched(
            what="data", name=f"{owner} {split}", place=f"{origin}: {' '.join(codes)}", files=tuple(paths)
        )
        for ((owner, split, origin), codes), paths in zip(languages.items(), files.values(), strict=True)
    ]


def translators_of(plans: Sequence[Plan]) -> list[str]:
    """Return the names of the translators of plans, whose models are not downloaded."""
    changes = [
        split.change
        for plan in plans
        for cell in plan.cells
        for split in (
            cell.test,
            *(data for stage in (cell.fit.stages if cell.fit else ()) for _, data in stage.train),
        )
    ]
    return list(dict.fromkeys(change.translator for change in changes if change is not None))
