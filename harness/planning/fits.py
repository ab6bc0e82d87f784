"""What is learnt in a run: the stages of every fit, and the training data of methods that learn on a frozen model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from harness.checks.spec_checks import check_training
from harness.data.origin import Origin
from harness.data.sources import DataFinder, FoundData
from harness.errors import HarnessError, MissingDataError, UnknownNameError, UsageError
from harness.kinds.methods import Method
from harness.languages.table import Language
from harness.models.capabilities import Head, HeadSpec
from harness.planning.plan import Cell, FitPlan, LearningPlan, PlanRequest, PromptPlan, StagePlan
from harness.planning.translations import TRANSLATE_TRAIN, TrainVariants
from harness.specs.documents import resolve_settings
from harness.specs.schema import TaskSpec
from harness.specs.task_entry import TaskEntry


def stage_origin(request: PlanRequest, name: str) -> Origin:
    """Return where the data of a training stage come from; raises `SpecError` for a training set with faults."""
    if name in request.catalog.names("training"):
        spec, entry = request.catalog.training(name)
        check_training(spec, entry.document, request.registry)
    return Origin.named(name, request.catalog)


class FitPlanner:
    """Plans the fits of one run; asked twice for the same, it gives the same object."""

    def __init__(self, request: PlanRequest) -> None:
        self._request = request
        self._config, self._catalog, self._finder = request.config, request.catalog, request.finder
        self._description = request.model.description
        self._fits: dict[tuple[str, str, str, int], FitPlan | HarnessError] = {}
        self._translated = TrainVariants(request.config, request.registry)

    @property
    def notes(self) -> list[str]:
        """Sentences about the stages for the run's notes."""
        fits = [fit for fit in self._fits.values() if isinstance(fit, FitPlan)]
        return [stage.note for fit in fits for stage in fit.stages if stage.note]

    def fit(self, spec: TaskSpec, language: Language, protocol: str, seed: int) -> FitPlan:
        """Return the fit of a cell, the same object for cells that share it; raises `MissingDataError`."""
        assert spec.transfer is not None
        target = language.code if self._is_of_one(spec, language, protocol) else ""
        key = (spec.task, protocol, target, seed)
        if key not in self._fits:
            try:
                self._fits[key] = self._new_fit(spec, protocol, target, seed)
            except MissingDataError as error:
                self._fits[key] = error
        planned = self._fits[key]
        if isinstance(planned, HarnessError):
            raise planned
        return planned

    def _is_of_one(self, spec: TaskSpec, language: Language, protocol: str) -> bool:
        """Return whether a fit serves this language alone."""
        if protocol == "translate_train_all":
            return language.code in self._catalog.task(spec.task).added
        return protocol in {"in_language", "translate_train"}

    def view(self, protocol: str) -> dict[str, str]:
        """Return the conditions of a cell that its fit makes; what is usual is not listed."""
        view = self._translated.view(protocol)
        if self._config.select_on:
            view["select_on"] = self._config.select_on
        if self._config.train_languages and protocol not in {"in_language", *TRANSLATE_TRAIN}:
            view["train_languages"] = "+".join(self._config.train_languages)
        return view

    def _new_fit(self, spec: TaskSpec, protocol: str, target: str, seed: int) -> FitPlan:
        assert spec.transfer is not None
        languages = self._config.train_languages or (spec.transfer.source,)
        if protocol == "in_language":
            languages = (target,)
        elif protocol in TRANSLATE_TRAIN:
            languages = (spec.transfer.source,)
        recipe = self._config.recipe or spec.transfer.recipe
        targets: tuple[str, ...] = (target,)
        if protocol == "translate_train_all":
            targets = self._catalog.task(spec.task).joint_languages(target)
        stages = tuple(
            self._stage(spec, name, languages, recipe, protocol, targets) for name in spec.transfer.stages
        )
        tuned = self._catalog.recipe(recipe).tuned_fit(spec.transfer.stages)
        return FitPlan(stages=stages, seed=seed, recipe=recipe, tuned=tuned)

    def _stage(
        self,
        spec: TaskSpec,
        name: str,
        languages: tuple[str, ...],
        recipe: str,
        protocol: str,
        targets: tuple[str, ...],
    ) -> StagePlan:
        origin = stage_origin(self._request, name)
        kind = self._request.registry.kinds.get(origin.spec.kind)
        assert kind.head is not None
        train = []
        for code in languages:
            if origin.spec.source(code, "train") is None:
                having = [
                    language for language in origin.spec.languages if origin.spec.source(language, "train")
                ]
                raise MissingDataError(
                    f"The training set {name!r} has no training split in {code!r}.",
                    hint=f"It has: {', '.join(having) or 'none'}.",
                )
            train.append((code, origin.find(self._finder, code, "train")))
        train = self._translated.parts(
            name, train, origin.spec.translate, protocol, targets, origin.train_finder(self._finder)
        )
        head = kind.head
        prompt: PromptPlan | None = None
        if head not in self._description.after_fit and Head.TEXT_TO_TEXT in self._description.after_fit:
            head, prompt = Head.TEXT_TO_TEXT, self._prompt(name)
        settings = resolve_settings(self._catalog.recipe(recipe), head, name, self._description)
        if self._config.select_on is not None:
            # Some recipes keep the last checkpoint: the language would be recorded and choose nothing.
            settings = replace(settings, select_best=True)
        validation = self._validation(spec, name, origin, self._config.select_on or languages[0])
        validation, note = _separate(name, validation, train, settings.select_best)
        return StagePlan(
            name=name,
            kind=kind,
            head=HeadSpec(
                head=head,
                # The choices are inputs there: one head scores any number of them, so that stages can share it.
                labels=() if head in {Head.MULTIPLE_CHOICE, Head.TEXT_TO_TEXT} else origin.spec.label_names,
                inputs=origin.spec.input_names,
            ),
            prompt=prompt,
            labels=origin.spec.label_names,
            train=tuple(train),
            validation=validation,
            settings=settings,
            limit=self._config.train_limit,
            phrases=origin.spec.input_phrases,
            note=note,
        )

    def _prompt(self, stage: str) -> PromptPlan:
        """Return the text format of a stage; raises `MissingDataError` where it has no such format.

        Raises `UsageError` for several prompts: a model is fine-tuned with one.
        """
        preset, *extra = self._config.prompt or ("mt5",)
        if extra:
            raise UsageError(
                f"A model is fine-tuned with one prompt, and --prompt names {1 + len(extra)}.",
                hint="Give one run per prompt.",
            )
        try:
            spec = self._catalog.prompt(stage, preset)
        except UnknownNameError as error:
            raise MissingDataError(
                f"The training set {stage!r} has no text format {preset!r}: {error}"
            ) from error
        inherited = self._catalog.inherited_prompt(spec)
        return PromptPlan(spec=spec, inherited=inherited, policy=self._config.literals, instruction="en")

    def _validation(
        self, spec: TaskSpec, name: str, origin: Origin, code: str
    ) -> tuple[str, FoundData] | None:
        """Return the dev set of a stage: its own, or with ``--select-on`` that of the task, if the stage can read it.

        A stage before the last one may have none; its last checkpoint is kept then. Raises `MissingDataError` where the
        last stage has none in the language of ``--select-on``.
        """
        origins, stage = [origin], origin.spec
        same = (stage.kind, stage.input_names, stage.label_names) == (
            spec.kind,
            spec.input_names,
            spec.label_names,
        )
        if self._config.select_on is not None and same:
            origins.append(Origin.of(self._catalog.task(spec.task)))
        for candidate in origins:
            with suppress(MissingDataError):
                return code, candidate.find(self._finder, code, "validation")
        if self._config.select_on is not None and spec.transfer and name == spec.transfer.stages[-1]:
            raise MissingDataError(
                f"No dev set in {code!r} was found for {' or '.join(dict.fromkeys(map(repr, (name, spec.task))))}, "
                f"which --select-on {code} needs."
            )
        return None


def _separate(
    name: str,
    validation: tuple[str, FoundData] | None,
    train: Sequence[tuple[str, FoundData]],
    select_best: bool,
) -> tuple[tuple[str, FoundData] | None, str]:
    """Return the dev set of a stage unless the stage also trains on it, and a note where no checkpoint is chosen."""
    if validation is not None and any(validation[1].shares_rows(split) for _, split in train):
        return None, f"{name}: its dev set is used as the training set, so the last checkpoint is kept"
    if validation is None and select_best:
        return None, f"{name}: no dev set was found, so the last checkpoint is kept"
    return validation, ""


def without_selection_on_test(
    cells: Sequence[Cell], same_items: Sequence[FoundData] = ()
) -> tuple[list[Cell], list[str]]:
    """Return the cells with fits that choose no checkpoint on files which the run also tests on.

    A dev file that is scored, also in place of a missing test file, would otherwise choose the checkpoint too.
    `same_items` are further splits with the items that are tested, in other languages.
    """
    tested: dict[Path, list[FoundData]] = {}
    for split in (*(cell.test for cell in cells), *same_items):
        for path in split.files.paths:
            tested.setdefault(path, []).append(split)
    notes: list[str] = []
    checked: list[Cell] = []
    for cell in cells:
        fit = cell.fit
        if fit is not None and any(_selects_on(stage, tested) for stage in fit.stages):
            stages = tuple(_last_checkpoint(stage, tested, notes) for stage in fit.stages)
            fit = replace(fit, stages=stages)
        checked.append(cell if fit is cell.fit else replace(cell, fit=fit))
    return checked, list(dict.fromkeys(notes))


def _selects_on(stage: StagePlan, tested: Mapping[Path, Sequence[FoundData]]) -> bool:
    """Return whether the dev set of a stage has rows of a test set; `tested` has these by file."""
    if stage.validation is None:
        return False
    validation = stage.validation[1]
    return any(
        validation.shares_rows(test) for path in validation.files.paths for test in tested.get(path, ())
    )


def _last_checkpoint(
    stage: StagePlan, tested: Mapping[Path, Sequence[FoundData]], notes: list[str]
) -> StagePlan:
    if stage.validation is None or not _selects_on(stage, tested):
        return stage
    note = (
        f"{stage.name}: its dev set in {stage.validation[0]!r} is used as a test set of this run, so the last "
        "checkpoint is kept and none is chosen on it"
    )
    notes.append(note)
    return replace(stage, validation=None, note=note)


def plan_learning(
    request: PlanRequest,
    entry: TaskEntry,
    code: str,
    method: Method,
    conditions: Mapping[str, str],
    test: FoundData,
    seeds: Sequence[int],
) -> tuple[LearningPlan | None, str]:
    """Return the training data of a method for the cells of a language, and a note; None for methods that do not learn.

    The task's own splits in the language; where it has no train, those of its last training stage in the
    source language. Raises `MissingDataError` where there are none either.

    Args:
        request: What the plan is made of.
        entry: The task.
        code: The language of the cell.
        method: Of the cell.
        conditions: Values of the task's axes.
        test: What the cell is tested on: never learnt from.
        seeds: Of all cells that differ in the seed alone.
    """
    if not method.splits:
        return None, ""
    origin, note = Origin.of(entry), ""
    try:
        train = _find(request.finder, origin, code, "train", conditions, test)
    except MissingDataError as error:
        origin, code = _transferred(request, entry, error)
        conditions = conditions if origin.name == entry.spec.task else {}
        train = _find(request.finder, origin, code, "train", conditions, test)
    validation: FoundData | None = None
    if "validation" in method.splits:
        try:
            validation = _find(request.finder, origin, code, "validation", conditions, test)
        except MissingDataError as error:
            reason = str(error).splitlines()[0].removesuffix(".")
            note = f"Every tenth cluster of train is held out to choose on: {reason}"
    plan = LearningPlan(
        owner=origin.name,
        language=code,
        train=train,
        validation=validation,
        spec=origin.spec,
        limit=request.config.train_limit,
        seeds=tuple(seeds),
    )
    return plan, note


def _find(
    finder: DataFinder, origin: Origin, code: str, split: str, conditions: Mapping[str, str], test: FoundData
) -> FoundData:
    data = origin.find(finder, code, split, conditions)
    if set(data.files.paths) & set(test.files.paths):
        raise MissingDataError(
            f"The {split} split of {origin.name!r} in {code!r} is the file that is tested on "
            f"({data.files.describe}), so nothing can be learnt from it."
        )
    return data


def _transferred(request: PlanRequest, entry: TaskEntry, error: MissingDataError) -> tuple[Origin, str]:
    """Return the last training stage and the source language; raises what is missing otherwise."""
    spec = entry.spec
    if spec.transfer is None:
        raise error
    stage = spec.transfer.stages[-1]
    origin = stage_origin(request, stage)
    strange = sorted(set(origin.spec.label_names) - set(spec.label_names))
    if origin.spec.kind != spec.kind or strange:
        difference = f"the label {strange[0]!r}" if strange else f"the kind {origin.spec.kind!r}"
        raise MissingDataError(
            f"{error} Its training set {stage!r} has {difference}, which {spec.task!r} does not have."
        ) from error
    return origin, spec.transfer.source
