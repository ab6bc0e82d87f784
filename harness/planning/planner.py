"""Makes a plan of what a user asked for: cells to run, models to fit, and what is skipped with its reason.

Pure: reads specs, small model configs and the presence of data files, and changes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import get_args

from harness.checks.id_alignment import AlignmentCheck
from harness.checks.shared_rows import FoundTest, check_own_rows
from harness.checks.spec_checks import check_task
from harness.data.origin import Origin
from harness.data.sources import DataFinder, FoundData
from harness.errors import AdapterError, CapabilityError, MissingDataError, UnknownNameError, UsageError
from harness.kinds.kind import TaskKind
from harness.kinds.methods import Method, Pairing, choose_pairings, missing_tags
from harness.languages.table import Language, known_languages
from harness.models.adapters import AdapterEntry, ModelReference, gc_paused
from harness.models.capabilities import Head
from harness.models.options import parse_options
from harness.planning.evaluated_split import evaluated_on
from harness.planning.fits import FitPlanner, plan_learning, stage_origin, without_selection_on_test
from harness.planning.plan import Cell, Model, Plan, PlanRequest, PoolPlan, Skip
from harness.planning.prompts import PromptPlanner
from harness.planning.run_config import DEFAULT_SEED, RunConfig
from harness.planning.sampling import sampling_notes
from harness.planning.translations import VariantPlanner
from harness.planning.unread_files import unread_file_notes
from harness.registry.registry import Registry
from harness.specs.catalog import Catalog
from harness.specs.schema import ProtocolName, Source, TaskSpec, source_language
from harness.specs.selection import (
    SelectedTask,
    check_languages,
    named_and_excluded,
    plain_codes,
    plain_patterns,
    select,
)
from harness.specs.task_entry import TaskEntry
from harness.table import NamedTable

NAMES_OF_HF = frozenset({"huggingface", "hugging_face", "hf_hub", "hub", "transformers", "pretrained"})
"""What other tools call the models of the Hub."""


def resolve_model(adapters: NamedTable[AdapterEntry], text: str, options: Mapping[str, str]) -> Model:
    """Return the model that a ``--model`` value names; ``hf:...`` is followed to the adapter that opens it."""
    # Of other adapters a name is a model's, which may be called anything: only the adapter is known.
    baselines = [
        name for entry in adapters if entry.baselines for name in (*entry.baselines, *entry.examples)
    ]
    model_names = [
        *baselines,
        *(entry.examples[0] for entry in adapters if entry.name == text.rstrip(":") and entry.examples),
    ]
    reference = ModelReference.parse(text, model_names)
    try:
        entry = adapters.get(reference.scheme)
    except UnknownNameError as error:
        meant = "hf" if reference.scheme.lower() in NAMES_OF_HF and "hf" in adapters else ""
        raise UnknownNameError(
            "adapter",
            reference.scheme,
            adapters.names,
            hint="Run 'harness models' to see all.",
            near=[f"{meant}:{reference.ref}"] if meant else None,
        ) from error
    parsed = parse_options(entry, options)
    description = entry.describe_model(reference.ref, parsed)
    if description.adapter != entry.name:
        entry = adapters.get(description.adapter)
        parsed = parse_options(entry, options)
    return Model(reference=reference, entry=entry, options=parsed, description=description)


@gc_paused()
def make_plan(
    config: RunConfig, registry: Registry, catalog: Catalog, finder: DataFinder, model: Model
) -> Plan:
    """Return the plan for one model; raises `UsageError`, or `AdapterError`, for what no run could do."""
    if model.description.fault:
        raise AdapterError(model.description.fault)
    config, notes = _with_plain_codes(config, catalog)
    _check_config(config, catalog)
    request = PlanRequest(config=config, registry=registry, catalog=catalog, finder=finder, model=model)
    planner = _Planner(request)
    chosen = select(catalog, config.tasks, config.languages, shots=config.shots)
    _check_prompt_name(config, chosen, catalog)
    for selected in chosen:
        _check_prompt_options(config, selected.entry.spec.task, catalog)
        planner.add(replace(selected, entry=evaluated_on(selected.entry, config.split)))
    plan = planner.plan(unread_file_notes(chosen, catalog, finder.options))
    notes += [
        f"{selected.entry.spec.task}: {' '.join(selected.outside)} of --tasks is not in --languages: skipped"
        for selected in chosen
        if selected.outside
    ]
    return replace(plan, notes=(*notes, *plan.notes))


def _with_plain_codes(config: RunConfig, catalog: Catalog) -> tuple[RunConfig, list[str]]:
    """Return the configuration with the harness's codes of all languages that it names, and notes on them."""
    tasks, notes = plain_patterns(catalog, config.tasks)
    single = (config.select_on, config.instruction_language)
    codes = [*(config.languages or ()), *config.train_languages, *(code for code in single if code)]
    plain, remarks = plain_codes(catalog, codes)
    changed = replace(
        config,
        tasks=tuple(tasks),
        languages=config.languages and tuple(dict.fromkeys(plain[code] for code in config.languages)),
        train_languages=tuple(dict.fromkeys(plain[code] for code in config.train_languages)),
        select_on=config.select_on and plain[config.select_on],
        instruction_language=config.instruction_language and plain[config.instruction_language],
    )
    return changed, list(dict.fromkeys([*notes, *remarks]))


def _check_config(config: RunConfig, catalog: Catalog) -> None:
    """Raise `UnknownNameError` for unknown protocols and languages, `UsageError` for two uses of a dev set."""
    if config.select_on and config.split == "validation":
        raise UsageError(
            f"--select-on {config.select_on} chooses the checkpoint on a dev set, and --split validation scores dev "
            "sets.",
            hint="Omit --select-on; the last checkpoint is scored.",
        )
    if config.gold and config.split == "validation":
        raise UsageError("--gold has labels of test items, and --split validation scores dev items.")
    for name in config.protocols:
        if name not in get_args(ProtocolName):
            raise UnknownNameError("protocol", name, get_args(ProtocolName))
    single = [code for code in (config.select_on, config.instruction_language) if code is not None]
    included, excluded = named_and_excluded(config.languages or ())
    check_languages(catalog, (*config.train_languages, *included, *excluded, *single))


def _check_prompt_options(config: RunConfig, task: str, catalog: Catalog) -> None:
    """Raise `UsageError` for options that a task with prompts of its own cannot follow."""
    for option, is_on in (("--chat", config.chat), ("--constrained", config.constrained)):
        if is_on and catalog.is_made(task):
            raise UsageError(
                f"{option} cannot be given for {task!r}, whose prompts are made by its source.",
                hint=f"Run it by itself, without {option}.",
            )


def _needs_plain_prompt(method: Method) -> bool:
    """Return whether a method asks for the likelihood of given answers, which none has after a chat template.

    A template may open reasoning, or expect it of the model.
    """
    return method.prompted and method.name != "generate"


def _check_chat_method(name: str | None, methods: Iterable[Method]) -> None:
    """Raise `UsageError` for ``--chat`` with a method that scores given answers."""
    if any(method.name == name and _needs_plain_prompt(method) for method in methods):
        raise UsageError(
            f"--method {name} scores given answers by their log-likelihood, and with --chat the model writes its own: "
            "after a chat template, a model that reasons gives no likelihood to an answer.",
            hint=f"Omit --chat, or --method {name}.",
        )


def _check_prompt_name(config: RunConfig, chosen: Sequence[SelectedTask], catalog: Catalog) -> None:
    """Raise `UnknownNameError` for a prompt that no selected task has, nor a training set of one."""
    if not config.prompt:
        return
    specs = [selected.entry.spec for selected in chosen]
    owners = {
        name for spec in specs for name in (spec.task, *(spec.transfer.stages if spec.transfer else ()))
    }
    presets = {preset for owner in owners for preset in catalog.presets(owner)}
    for name in config.prompt:
        if name not in presets:
            raise UnknownNameError("prompt of the selected tasks", name, presets)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """One version of a language's test items."""

    view: Mapping[str, str]
    test: FoundData
    pool: PoolPlan | None = None
    text: Language | None = None
    """The language that answers are in, where translation made it another one."""


class _Planner:
    def __init__(self, request: PlanRequest) -> None:
        config, registry, finder = request.config, request.registry, request.finder
        self._request = request
        self._config, self._registry, self._catalog, self._finder = config, registry, request.catalog, finder
        self._model = request.model
        self._seeds = config.seeds or (DEFAULT_SEED,)
        self._cells: list[Cell] = []
        self._tests: list[FoundTest] = []
        self._skipped: list[Skip] = []
        self._fits = FitPlanner(request)
        self._learning_notes: dict[str, None] = {}
        self._prompts = PromptPlanner(request)
        self._alignment = AlignmentCheck(registry, finder)
        self._dev_sets: list[FoundData] = []
        self._split_view = {} if config.split == "test" else {"split": config.split}
        self._pools: dict[tuple[str, str], PoolPlan] = {}
        self._suites: dict[str, None] = {}
        self._published: dict[str, tuple[str, ...]] = {}
        self._added: dict[str, dict[str, str]] = {}
        self._variants = VariantPlanner(
            config.variants,
            config.translators,
            registry,
            finder,
            limit=config.limit,
            romanised=config.romanised,
            split=config.split,
        )

    def add(self, selected: SelectedTask) -> None:
        spec = selected.entry.spec
        check_task(selected.entry, self._registry, self._catalog)
        for code in selected.missing:
            label = (
                f"{known_languages().get(code).name} ({code})" if code in known_languages() else repr(code)
            )
            reason = f"task {spec.task!r} has no {label}"
            self._skipped.append(Skip(task=spec.task, language=code, reason=reason, missing_language=True))
        for code in selected.unlisted:
            suites = " and ".join(map(repr, selected.suites))
            reason = f"the language list of {suites} for {spec.task!r} has no {code}"
            self._skip(spec, code, f"{reason}; run it with --tasks {spec.task}:{code}")
        kind = self._registry.kinds.get(spec.kind)
        pairings = self._pairings(spec, kind, selected)
        self._suites |= dict.fromkeys(selected.suites)
        added = selected.entry.added
        run = {code: added[code] for code in selected.languages if code in added}
        if run:
            self._added[spec.task] = run
        if self._config.split == "validation" and spec.parallel:
            self._add_dev_sets(selected.entry)
        self._published[spec.task] = selected.published or tuple(
            code for code in spec.languages if code not in added
        )
        self._tests = []
        for code in selected.languages:
            for version in (*self._versions(selected.entry, code), *self._translated(selected.entry, code)):
                self._add_pairings(selected.entry, code, pairings, version)
        check_own_rows(selected.entry, self._tests)

    def _add_dev_sets(self, entry: TaskEntry) -> None:
        """Add the dev sets that a checkpoint could be chosen on: a parallel task has the same items everywhere."""
        for code in (source_language(entry.spec), *self._config.train_languages):
            with suppress(MissingDataError):
                source = entry.spec.source(code, "test")
                self._dev_sets.append(Origin.of(entry).find(self._finder, code, "validation", source=source))

    def _pairings(self, spec: TaskSpec, kind: TaskKind, selected: SelectedTask) -> list[Pairing]:
        declared = self._registry.methods
        methods = [declared.get(name) for name in declared.names if name.startswith(f"{kind.name}:")]
        order = {name: index for index, name in enumerate(kind.methods)}
        methods.sort(key=lambda method: (order.get(method.name, len(order)), method.name))
        if self._config.method is not None:
            names = sorted({method.name for method in declared})
            if self._config.method not in names:
                raise UnknownNameError("method", self._config.method, names)
        if self._config.chat:
            methods = [method for method in methods if not _needs_plain_prompt(method)]
            _check_chat_method(self._config.method, declared)
        head = self._head_of(spec)
        methods = [method for method in methods if self._has_prompt(spec, method, head)]
        pairings, reasons = choose_pairings(
            spec,
            methods,
            self._model.description,
            head=head,
            protocols=self._config.protocols,
            suite_protocols=[self._catalog.suite(name).protocol for name in selected.suites],
            method_name=self._config.method,
        )
        for reason in reasons:
            for code in selected.languages:
                self._skip(spec, code, reason)
        return pairings

    def _head_of(self, spec: TaskSpec) -> Head | None:
        """Return the head that the task's training fits: its kind's, or text to text where a model has only that."""
        kind = (
            spec.kind
            if spec.transfer is None
            else stage_origin(self._request, spec.transfer.stages[-1]).spec.kind
        )
        head = self._registry.kinds.get(kind).head
        after_fit = self._model.description.after_fit
        return Head.TEXT_TO_TEXT if head not in after_fit and Head.TEXT_TO_TEXT in after_fit else head

    def _has_prompt(self, spec: TaskSpec, method: Method, head: Head | None) -> bool:
        """Return whether a prompt that a method would use can serve it: to rank, it needs choices."""
        if not method.prompted:
            return True
        fits = head is Head.TEXT_TO_TEXT and self._config.protocols != ("prompted",)
        presets = self._prompts.presets(spec.task, method.name, fits=fits)
        prompts = [
            self._catalog.prompt(spec.task, name)
            for name in presets
            if name in self._catalog.presets(spec.task)
        ]
        if len(prompts) < len(presets):
            return True  # The plan of the prompt lists the known ones.
        # The plan of a cloze for a model that writes names the presets to use instead.
        return any(
            bool(prompt.choice)
            if method.name == "rank"
            else bool(prompt.item) or prompt.formulation == "cloze"
            for prompt in prompts
        )

    def _versions(self, entry: TaskEntry, code: str) -> Iterator[_Version]:
        """Yield every version of a language's own items that was found: variants and axes crossed."""
        spec = entry.spec
        names = ["original" if name == "zs" else name for name in self._config.variants or ("original",)]
        for name in dict.fromkeys(name for name in names if name not in self._variants.variants):
            view: dict[str, str] = {}
            source = spec.source(code, "test")
            if name != "original":
                variant = spec.variants.get(name)
                if variant is None:
                    available = ", ".join(["original", *spec.variants])
                    self._skip(spec, code, f"task {spec.task!r} has no variant {name!r}; it has: {available}")
                    continue
                view["variant"] = name
                source = variant.splits.get("test", source)
            for values in itertools.product(*spec.axes.values()):
                conditions = dict(zip(spec.axes, values, strict=True))
                version = self._version(entry, code, view, conditions, source)
                if version is not None:
                    yield version

    def _version(
        self,
        entry: TaskEntry,
        code: str,
        named: Mapping[str, str],
        conditions: Mapping[str, str],
        source: Source | None,
    ) -> _Version | None:
        """Return one version of a language's own items; None where it is skipped."""
        spec, view, split = entry.spec, {**named, **conditions, **self._split_view}, self._config.split
        if source is None:
            language = entry.languages.get(code)
            self._skip(spec, code, f"task {spec.task!r} has no {split} split in {language.name} ({code})")
            return None
        try:
            test = Origin.of(entry).find(self._finder, code, split, conditions, source=source)
            self._tests.append(FoundTest(language=code, view=view, found=test))
            pool = self._pool(entry, code)
        except MissingDataError as error:
            self._skip(spec, code, str(error), view=view)
            return None
        strange = self._alignment.reason(entry, code, variant=named.get("variant"), conditions=conditions)
        if strange is not None:
            self._skip(spec, code, strange, view=view)
            return None
        text = None if spec.answer_language is None else entry.languages.get(spec.answer_language)
        return _Version(view=view, test=test, pool=pool, text=text)

    def _translated(self, entry: TaskEntry, code: str) -> Iterator[_Version]:
        """Yield the versions of a language's items that translators make."""
        conditions = dict.fromkeys(entry.spec.axes, "")
        for variant, translator in self._variants.translations():
            try:
                version = self._variants.plan(entry, code, variant, translator, conditions)
            except MissingDataError as error:
                view = {"variant": variant, "translator": translator}
                self._skip(entry.spec, code, str(error), view=view)
                continue
            strange = self._alignment.reason(entry, code)
            if strange is not None:
                self._skip(entry.spec, code, strange, view=version.view)
                continue
            yield _Version(view={**version.view, **self._split_view}, test=version.found, text=version.text)

    def _add_pairings(
        self, entry: TaskEntry, code: str, pairings: Sequence[Pairing], version: _Version
    ) -> None:
        """Add the cells of one version of a language's items: a cell per pairing, prompt and seed."""
        spec, language = entry.spec, entry.languages.get(code)
        conditions = {axis: version.view[axis] for axis in spec.axes if axis in version.view}
        for pairing in pairings:
            method, seeds = pairing.method, self._seeds_of(pairing)
            for preset in self._prompts.presets(spec.task, method.name, fits=pairing.fits):
                try:
                    prompt = self._prompts.plan(
                        entry, version.text or language, pairing, version.test, preset
                    )
                    learning, note = plan_learning(
                        self._request, entry, code, method, conditions, version.test, seeds
                    )
                except (MissingDataError, UnknownNameError, CapabilityError) as error:
                    self._skip(spec, code, str(error), pairing.protocol, view=version.view)
                    continue
                self._learning_notes |= dict.fromkeys(filter(None, [note]))
                view = {**version.view, **self._prompts.view(prompt, method.name, fits=pairing.fits)}
                if learning is not None and learning.language != code:
                    view["probe_train"] = learning.language
                cell = Cell(
                    spec=spec,
                    language=language,
                    pairing=pairing,
                    fit=None,
                    seed=seeds[0],
                    test=version.test,
                    view=view,
                    pool=version.pool,
                    prompt=prompt,
                    learning=learning,
                    text=version.text,
                )
                self._add_seeds(cell, seeds)
                if prompt is None:
                    break

    def _add_seeds(self, cell: Cell, seeds: Sequence[int]) -> None:
        """Add a cell per seed, with its fit where the pairing trains a model."""
        spec, language, protocol = cell.spec, cell.language, cell.pairing.protocol
        if not cell.pairing.fits:
            self._cells += [replace(cell, seed=seed) for seed in seeds]
            return
        for seed in seeds:
            try:
                fit = self._fits.fit(spec, language, protocol, seed)
            except MissingDataError as error:
                self._skip(spec, language.code, str(error), protocol, cell.view)
                continue
            view = {**self._fits.view(protocol), **cell.view}
            self._cells.append(replace(cell, fit=fit, seed=seed, view=view))

    def _seeds_of(self, pairing: Pairing) -> tuple[int, ...]:
        if pairing.method.splits:
            return self._config.seeds or pairing.method.seeds or self._seeds
        return self._seeds if pairing.fits else self._seeds[:1]

    def _pool(self, entry: TaskEntry, language: str) -> PoolPlan | None:
        """Return the files of a language's candidates; raises `MissingDataError` where none were found."""
        spec = entry.spec
        source = spec.pool_source
        if source is None:
            return None
        key = (spec.task, language if language in entry.added else "")
        if key not in self._pools:
            splits: list[tuple[str, FoundData]] = []
            missing: list[str] = []
            failure: MissingDataError | None = None
            for code in entry.pool_languages(language):
                try:
                    split = Origin.of(entry).find(self._finder, code, "candidates", source=source)
                    splits.append((code, split))
                except MissingDataError as error:
                    failure = error
                    missing.append(code)
            if not splits:
                assert failure is not None
                raise failure
            self._pools[key] = PoolPlan(parts=tuple(splits), missing=tuple(missing))
        return self._pools[key]

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

    def _missing_metrics(self) -> list[str]:
        """Return why some metrics of the cells cannot be computed here, each once."""
        names = dict.fromkeys(name for cell in self._cells for name in cell.spec.metrics)
        metrics = [self._registry.metrics.get(name) for name in names]
        reasons = [metric.missing() for metric in metrics if metric.missing is not None]
        return [reason for reason in reasons if reason is not None]

    def _missing_tags(self) -> list[str]:
        """Return which tags of a task the user's tagger never gives, once per task."""
        description = self._model.description
        by_task = {cell.spec.task: missing_tags(cell.spec, cell.pairing, description) for cell in self._cells}
        return [
            f"{description.ref} has no tags {', '.join(missing)}: where {task} has them, its answers are wrong"
            for task, missing in by_task.items()
            if missing
        ]

    def plan(self, further_notes: Iterable[str] = ()) -> Plan:
        cells, notes = without_selection_on_test(self._cells, self._dev_sets)
        if self._config.limit is not None:
            items = "item" if self._config.limit == 1 else "items"
            notes = [
                f"--limit {self._config.limit}: at most {self._config.limit} {items} per language",
                *notes,
            ]
        notes = [*sampling_notes(self._config), *notes]
        if base := self._model.description.metadata.get("base"):
            notes.append(f"{self._model.reference} is a LoRA adapter on {base}")
        if unread := self._model.description.metadata.get("unread_head"):
            notes.append(
                f"the {unread} head of {self._model.reference} is not read: of decoders, only heads fitted here are"
            )
        notes += dict.fromkeys(self._fits.notes)
        notes += self._learning_notes
        notes += self._prompts.notes
        notes += self._missing_metrics()
        notes += self._missing_tags()
        notes += further_notes
        notes += [
            f"{task}{code and ':'}{code}: the candidate pool has no items of {' '.join(pool.missing)}, whose files "
            "were not found, so scores are not comparable with those on the whole pool"
            for (task, code), pool in self._pools.items()
            if pool.missing
        ]
        return Plan(
            model=self._model,
            cells=tuple(cells),
            skipped=tuple(self._skipped),
            notes=tuple(notes),
            suites=tuple(self._catalog.suite(name) for name in self._suites),
            published=self._published,
            added=self._added,
            human=self._catalog.human_performance(),
        )
