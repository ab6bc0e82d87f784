"""From what a user asked to a plan: cells to run, models to fit, and what is skipped with its reason.

Pure: reads specs, small model configs and the presence of data files, and changes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from harness.adapters import ModelReference
from harness.capabilities import Head, HeadSpec
from harness.checking import check_task, check_training
from harness.data.sources import DataFinder, FoundData, data_ref
from harness.errors import HarnessError, MissingDataError, UnknownNameError, UsageError
from harness.kinds.kind import TaskKind
from harness.languages import Language, LanguageTable, known_languages
from harness.methods import Pairing, choose_pairings
from harness.options import parse_options
from harness.plan import DEFAULT_SEED, Cell, FitPlan, Model, Plan, PoolPlan, RunConfig, Skip, StagePlan
from harness.recipes import resolve_settings
from harness.registry import Registry
from harness.specs.catalog import Catalog, TaskEntry, described_languages
from harness.specs.schema import Source, TaskSpec, TrainingSpec
from harness.specs.selection import SelectedTask, select

__all__ = ["make_plan", "resolve_model"]


def resolve_model(registry: Registry, text: str, options: Mapping[str, str]) -> Model:
    """Return what a ``--model`` value names; ``hf:...`` is followed to the adapter that opens it."""
    reference = ModelReference.parse(text)
    try:
        entry = registry.adapters.get(reference.scheme)
    except UnknownNameError as error:
        raise UnknownNameError(
            "adapter", reference.scheme, registry.adapters.names, hint="Run 'harness models' to see all."
        ) from error
    parsed = parse_options(entry, options)
    description = entry.describe_model(reference.ref, parsed)
    if description.adapter != entry.name:
        entry = registry.adapters.get(description.adapter)
        parsed = parse_options(entry, options)
    return Model(reference=reference, entry=entry, options=parsed, description=description)


def make_plan(
    config: RunConfig, registry: Registry, catalog: Catalog, finder: DataFinder, model: Model
) -> Plan:
    """Return the plan for one model; raises `UsageError` for what no run could do."""
    _check_config(config, catalog)
    planner = _Planner(config, registry, catalog, finder, model)
    for selected in select(catalog, config.tasks, config.languages):
        planner.add(selected)
    return planner.plan()


def _check_config(config: RunConfig, catalog: Catalog) -> None:
    for name, value in (("--limit", config.limit), ("--train-limit", config.train_limit)):
        if value is not None and value < 1:
            raise UsageError(f"{name} {value} asks for no items; expected 1 or more.")
    known = catalog.language_codes()
    for code in (*config.train_languages, *(config.languages or ()), config.select_on):
        if code is not None and code not in known:
            known_languages().get(code)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Origin:
    """Where the data of a training stage come from: a training set, or a task's own training split."""

    kind: str
    spec: TaskSpec | TrainingSpec
    labels: tuple[str, ...]
    inputs: tuple[str, ...]
    languages: LanguageTable
    folders: Mapping[str, Traversable]


class _Planner:
    def __init__(
        self, config: RunConfig, registry: Registry, catalog: Catalog, finder: DataFinder, model: Model
    ) -> None:
        self._config = config
        self._registry = registry
        self._catalog = catalog
        self._finder = finder
        self._model = model
        self._seeds = config.seeds or (DEFAULT_SEED,)
        self._cells: list[Cell] = []
        self._skipped: list[Skip] = []
        self._fits: dict[tuple[str, str, int], FitPlan | HarnessError] = {}
        self._pools: dict[str, PoolPlan] = {}
        self._suites: dict[str, None] = {}
        self._published: dict[str, tuple[str, ...]] = {}

    def add(self, selected: SelectedTask) -> None:
        spec = selected.entry.spec
        check_task(selected.entry, self._registry, self._catalog)
        for code in selected.lacking:
            named = (
                f"{known_languages().get(code).name} ({code})" if code in known_languages() else repr(code)
            )
            self._skip(spec, code, f"task {spec.task!r} has no {named}")
        kind = self._registry.kinds.get(spec.kind)
        pairings = self._pairings(spec, kind, selected)
        self._suites |= dict.fromkeys(selected.suites)
        added = selected.entry.added
        self._published[spec.task] = tuple(code for code in spec.languages if code not in added)
        for code in selected.languages:
            for view, source in self._versions(spec, code):
                self._add_language(selected, code, pairings, view, source)

    def _pairings(self, spec: TaskSpec, kind: TaskKind, selected: SelectedTask) -> list[Pairing]:
        declared = self._registry.methods
        methods = [declared.get(name) for name in declared.names if name.startswith(f"{kind.name}:")]
        order = {name: index for index, name in enumerate(kind.methods)}
        methods.sort(key=lambda method: (order.get(method.name, len(order)), method.name))
        names = sorted({method.name for method in self._registry.methods})
        if self._config.method is not None and self._config.method not in names:
            raise UnknownNameError("method", self._config.method, names)
        pairings, reasons = choose_pairings(
            spec,
            methods,
            self._model.description,
            head=self._head_of(spec),
            protocols=self._config.protocols,
            method_name=self._config.method,
        )
        for reason in reasons:
            for code in selected.languages:
                self._skip(spec, code, reason)
        return pairings

    def _head_of(self, spec: TaskSpec) -> Head | None:
        if spec.transfer is None:
            return self._registry.kinds.get(spec.kind).head
        return self._registry.kinds.get(self._origin(spec.transfer.stages[-1]).kind).head

    def _origin(self, name: str) -> _Origin:
        if name not in self._catalog.names("training"):
            return _own_origin(self._catalog.task(name))
        spec, entry = self._catalog.training(name)
        check_training(spec, entry.document, self._registry)
        return _Origin(
            kind=spec.kind,
            spec=spec,
            labels=spec.labels,
            inputs=spec.inputs,
            languages=described_languages(spec.languages),
            folders=dict.fromkeys(spec.languages, entry.folder),
        )

    def _versions(self, spec: TaskSpec, code: str) -> Iterator[tuple[dict[str, str], Source | None]]:
        """Yield the view and the source of every version of a language's items: variants and axes crossed."""
        for name in self._config.variants or ("original",):
            view: dict[str, str] = {}
            source = spec.source(code, "test")
            if name != "original":
                variant = spec.variants.get(name)
                if variant is None:
                    known = ", ".join(["original", *spec.variants])
                    self._skip(spec, code, f"task {spec.task!r} has no variant {name!r}; it has: {known}")
                    continue
                view["variant"] = name
                source = variant.splits.get("test", source)
            for values in itertools.product(*spec.axes.values()):
                yield {**view, **dict(zip(spec.axes, values, strict=True))}, source

    def _add_language(
        self,
        selected: SelectedTask,
        code: str,
        pairings: Sequence[Pairing],
        view: Mapping[str, str],
        source: Source | None,
    ) -> None:
        spec, language = selected.entry.spec, selected.entry.languages.get(code)
        if source is None:
            self._skip(spec, code, f"task {spec.task!r} has no test split in {language.name} ({code})")
            return
        folder = selected.entry.folders.get(code)
        conditions = {axis: view[axis] for axis in spec.axes}
        try:
            test = self._find(source, spec.task, language, "test", folder, conditions)
            pool = self._pool(selected.entry)
        except MissingDataError as error:
            self._skip(spec, code, str(error), view=view)
            return
        for pairing in pairings:
            seeds = self._seeds if pairing.fits else self._seeds[:1]
            for seed in seeds:
                self._add_cell(spec, language, pairing, seed, test, view, pool)

    def _pool(self, entry: TaskEntry) -> PoolPlan | None:
        """Return the files of a task's candidates; raises `MissingDataError` where none were found."""
        spec = entry.spec
        source = spec.pool_source
        if source is None:
            return None
        if spec.task not in self._pools:
            parts: list[tuple[str, FoundData]] = []
            missing: list[str] = []
            failure: MissingDataError | None = None
            for code in spec.languages if spec.pools_languages else list(spec.languages)[:1]:
                try:
                    language = entry.languages.get(code)
                    found = self._find(source, spec.task, language, "candidates", entry.folders.get(code))
                    parts.append((code, found))
                except MissingDataError as error:
                    failure = error
                    missing.append(code)
            if not parts:
                assert failure is not None
                raise failure
            self._pools[spec.task] = PoolPlan(parts=tuple(parts), missing=tuple(missing))
        return self._pools[spec.task]

    def _add_cell(
        self,
        spec: TaskSpec,
        language: Language,
        pairing: Pairing,
        seed: int,
        test: FoundData,
        version: Mapping[str, str],
        pool: PoolPlan | None,
    ) -> None:
        fit = None
        if pairing.fits:
            try:
                fit = self._fit(spec, language, pairing.protocol, seed)
            except MissingDataError as error:
                self._skip(spec, language.code, str(error), pairing.protocol)
                return
        view = {**({} if fit is None else self._fit_view(pairing)), **version}
        cell = Cell(
            spec=spec, language=language, pairing=pairing, fit=fit, seed=seed, test=test, view=view, pool=pool
        )
        self._cells.append(cell)

    def _fit_view(self, pairing: Pairing) -> dict[str, str]:
        view = {}
        if self._config.select_on:
            view["select_on"] = self._config.select_on
        if self._config.train_languages and pairing.protocol != "in_language":
            view["train_languages"] = "+".join(self._config.train_languages)
        return view

    def _fit(self, spec: TaskSpec, language: Language, protocol: str, seed: int) -> FitPlan:
        assert spec.transfer is not None
        if protocol.startswith("translate_train"):
            raise MissingDataError(
                f"The protocol {protocol!r} needs translated training data, and no translator is installed."
            )
        target = language.code if protocol == "in_language" else ""
        key = (spec.task, target, seed)
        if key not in self._fits:
            try:
                self._fits[key] = self._new_fit(spec, target, seed)
            except MissingDataError as error:
                self._fits[key] = error
        known = self._fits[key]
        if isinstance(known, HarnessError):
            raise known
        return known

    def _new_fit(self, spec: TaskSpec, target: str, seed: int) -> FitPlan:
        assert spec.transfer is not None
        languages = (target,) if target else self._config.train_languages or (spec.transfer.source,)
        recipe = self._config.recipe or spec.transfer.recipe
        stages = tuple(self._stage(spec, name, languages, recipe) for name in spec.transfer.stages)
        return FitPlan(stages=stages, seed=seed, recipe=recipe)

    def _stage(self, spec: TaskSpec, name: str, languages: tuple[str, ...], recipe: str) -> StagePlan:
        origin = self._origin(name)
        kind = self._registry.kinds.get(origin.kind)
        assert kind.head is not None
        train = []
        for code in languages:
            source = origin.spec.source(code, "train")
            if source is None:
                having = [known for known in origin.spec.languages if origin.spec.source(known, "train")]
                raise MissingDataError(
                    f"The training set {name!r} has no training split in {code!r}.",
                    hint=f"It has: {', '.join(having) or 'none'}.",
                )
            language = origin.languages.get(code)
            train.append((code, self._find(source, name, language, "train", origin.folders.get(code))))
        settings = resolve_settings(self._catalog.recipe(recipe), kind.head, name, self._model.description)
        validation = self._validation(spec, name, origin, self._config.select_on or languages[0])
        validation, note = _separate(name, validation, train, settings.select_best)
        return StagePlan(
            name=name,
            kind=kind,
            head=HeadSpec(
                head=kind.head,
                # The choices are inputs there: one head scores any number of them, so that stages can share it.
                labels=() if kind.head is Head.MULTIPLE_CHOICE else origin.labels,
                inputs=origin.inputs,
            ),
            labels=origin.labels,
            train=tuple(train),
            validation=validation,
            settings=settings,
            limit=self._config.train_limit,
            phrases=origin.spec.input_phrases,
            note=note,
        )

    def _validation(
        self, spec: TaskSpec, name: str, origin: _Origin, code: str
    ) -> tuple[str, FoundData] | None:
        places = [(name, origin)]
        if self._config.select_on is not None:
            places.append((spec.task, _own_origin(self._catalog.task(spec.task))))
        for owner, candidate in places:
            source = candidate.spec.source(code, "validation")
            if source is None:
                continue
            language = candidate.languages.get(code)
            try:
                found = self._find(source, owner, language, "validation", candidate.folders.get(code))
            except MissingDataError:
                continue
            return code, found
        if self._config.select_on is not None:
            raise MissingDataError(
                f"No dev set in {code!r} was found for {name!r} or {spec.task!r}, which --select-on {code} needs."
            )
        return None

    def _find(
        self,
        source: Source,
        owner: str,
        language: Language,
        split: str,
        folder: Any,
        conditions: Mapping[str, str] | None = None,
    ) -> FoundData:
        ref = data_ref(
            source, owner=owner, language=language, split=split, folder=folder, conditions=conditions
        )
        return self._finder.find(source, ref)

    def _skip(
        self,
        spec: TaskSpec,
        code: str,
        reason: str,
        protocol: str | None = None,
        view: Mapping[str, str] | None = None,
    ) -> None:
        skip = Skip(task=spec.task, language=code, reason=reason, protocol=protocol, view=view or {})
        self._skipped.append(skip)

    def plan(self) -> Plan:
        fits = [fit for fit in self._fits.values() if isinstance(fit, FitPlan)]
        cells, notes = _without_selection_on_test(self._cells)
        notes += dict.fromkeys(stage.note for fit in fits for stage in fit.stages if stage.note)
        notes += [
            f"{task}: the candidate pool lacks {' '.join(pool.missing)}, whose files were not found, so scores "
            "are not comparable with those on the whole pool"
            for task, pool in self._pools.items()
            if pool.missing
        ]
        return Plan(
            model=self._model,
            cells=tuple(cells),
            skipped=tuple(self._skipped),
            notes=tuple(notes),
            suites=tuple(self._catalog.suite(name) for name in self._suites),
            published=self._published,
            human=self._catalog.human_performance(),
        )


def _separate(
    name: str,
    validation: tuple[str, FoundData] | None,
    train: Sequence[tuple[str, FoundData]],
    select_best: bool,
) -> tuple[tuple[str, FoundData] | None, str]:
    """Return the dev set of a stage unless the stage also trains on it, and a note where no checkpoint is chosen."""
    trained = {path for _, found in train for path in found.files.paths}
    if validation is not None and trained & set(validation[1].files.paths):
        return None, f"{name}: its dev set stands in for the training set, so the last checkpoint is kept"
    if validation is None and select_best:
        return None, f"{name}: no dev set was found, so the last checkpoint is kept"
    return validation, ""


def _own_origin(entry: TaskEntry) -> _Origin:
    return _Origin(
        kind=entry.spec.kind,
        spec=entry.spec,
        labels=entry.spec.label_names,
        inputs=entry.spec.input_names,
        languages=entry.languages,
        folders=entry.folders,
    )


def _without_selection_on_test(cells: Sequence[Cell]) -> tuple[list[Cell], list[str]]:
    """Return the cells with fits that choose no checkpoint on files which the run also tests on.

    A dev file that stands in for a missing test file would otherwise choose the checkpoint and score it.
    """
    tested = {path for cell in cells for path in cell.test.files.paths}
    notes: list[str] = []
    kept: list[Cell] = []
    for cell in cells:
        fit = cell.fit
        if fit is not None and any(
            stage.validation is not None and tested & set(stage.validation[1].files.paths)
            for stage in fit.stages
        ):
            stages = tuple(_last_checkpoint(stage, tested, notes) for stage in fit.stages)
            fit = replace(fit, stages=stages)
        kept.append(replace(cell, fit=fit))
    return kept, list(dict.fromkeys(notes))


def _last_checkpoint(stage: StagePlan, tested: set[Path], notes: list[str]) -> StagePlan:
    if stage.validation is None or not tested & set(stage.validation[1].files.paths):
        return stage
    note = (
        f"{stage.name}: its dev set in {stage.validation[0]!r} stands in for a test set of this run, so the last "
        "checkpoint is kept and none is chosen on it"
    )
    notes.append(note)
    return replace(stage, validation=None, note=note)
