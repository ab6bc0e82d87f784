"""Chooses training settings from a grid by the score on the English dev set, and writes them down as a recipe.

No test item is read: a model is chosen on English alone, so that the scores of other languages stay those of zero-shot
transfer. Every point of the grid is an ordinary fit in the cache, which a run with the recipe finds again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from pydantic import ValidationError

from harness.errors import CapabilityError, TrainingError, UnknownNameError, UsageError
from harness.models.capabilities import Adapter, Head, ModelDescription
from harness.models.requests import HasDevScore
from harness.planning.plan import FitPlan, Plan, StagePlan
from harness.running.fit_store import FitStore
from harness.specs.documents import RecipeSpec, SettingsPatch, TunedFit, TunedScore, Tuning, Value

DEV_LANGUAGE = "en"
AT_THE_END = 1_000_000_000
"""As `eval_steps`: more steps than any training has, so that the dev set is measured once, after the last one."""
DECIDING = ("select_best", "eval_steps", "validation_limit")
"""Settings that change what a dev score is, which a grid cannot compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One point of the grid: a fit for every seed."""

    settings: Mapping[str, Value]
    fits: tuple[FitPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Target:
    """A fit whose settings are to be chosen."""

    stages: tuple[str, ...]
    title: str
    trials: tuple[Trial, ...]
    obstacle: str = ""
    """Why nothing can be chosen for it; there are no trials then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Remaining training work."""

    stages: int
    """Trainings that are not in the cache."""
    cached: int
    steps: int
    is_least: bool
    """Whether there can be more steps: one long context makes several examples."""
    seconds: float | None
    """As earlier fits of the same model on the same data took; None where one of them was never measured."""


def read_grid(texts: Sequence[str]) -> dict[str, tuple[Value, ...]]:
    """Return the values of every setting in ``key=value,value`` options.

    Raises `UsageError` for another form, a value of the wrong type, and a setting that decides what a dev score is.
    """
    grid: dict[str, tuple[Value, ...]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        key, choices = key.strip(), [choice.strip() for choice in values.split(",") if choice.strip()]
        if not equals or not choices:
            raise UsageError(f"--grid {text!r} is not of the form SETTING=VALUE,VALUE.")
        settings = [name for name in SettingsPatch.model_fields if name not in DECIDING]
        if key in DECIDING:
            raise UsageError(f"--grid cannot vary {key!r}: dev scores would not be of the same kind.")
        if key not in settings:
            raise UnknownNameError("setting of a recipe", key, settings)
        if key in grid:
            raise UsageError(f"--grid gives {key!r} twice; put all of its values into one.")
        grid[key] = tuple(dict.fromkeys(_value(key, choice) for choice in choices))
    if not grid:
        raise UsageError("No grid was given.", hint="For example: --grid learning_rate=1e-5,2e-5,3e-5")
    return grid


def _value(key: str, text: str) -> Value:
    try:
        value: Value = getattr(SettingsPatch.model_validate({key: text}, strict=False), key)
    except ValidationError as error:
        raise UsageError(f"--grid {key}: {text!r} is not valid: {error.errors()[0]['msg']}.") from error
    return value


def find_targets(plan: Plan, grid: Mapping[str, Sequence[Value]]) -> list[Target]:
    """Return the fits of a plan with one trial for every point of the grid.

    Raises `UsageError` where the plan fits nothing, or a recipe could not hold what is chosen.
    """
    groups: dict[tuple[tuple[str, ...], str], list[FitPlan]] = {}
    for fit in plan.fits:
        groups.setdefault((tuple(stage.name for stage in fit.stages), fit.data_title), []).append(fit)
    if not groups:
        raise UsageError("Nothing is fine-tuned in this plan, so there is nothing to tune.")
    if len(recipes := sorted({fit.recipe for fit in plan.fits})) > 1:
        raise UsageError(
            f"The tasks have several recipes: {', '.join(recipes)}.", hint="Choose one with --recipe."
        )
    names = [name for stages, _ in groups for name in stages]
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise UsageError(
            f"Several fits train on {twice[0]!r}, and a recipe has one setting for it.",
            hint="Tune the tasks or languages one by one.",
        )
    return [_target(stages, title, fits, grid) for (stages, title), fits in groups.items()]


def _target(
    stages: tuple[str, ...], title: str, fits: Sequence[FitPlan], grid: Mapping[str, Sequence[Value]]
) -> Target:
    validation = fits[0].stages[-1].validation
    if validation is None:
        obstacle = "has no English dev set that is not tested or trained on"
        return Target(stages=stages, title=title, trials=(), obstacle=obstacle)
    if validation[0] != DEV_LANGUAGE:
        obstacle = f"has a dev set in {validation[0]!r}, not in English"
        return Target(stages=stages, title=title, trials=(), obstacle=obstacle)
    if any(data.change is not None for fit in fits for stage in fit.stages for _, data in stage.train):
        obstacle = "has a translated training set, which is made by a run"
        return Target(stages=stages, title=title, trials=(), obstacle=obstacle)
    points = (dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values()))
    trials = [Trial(settings=point, fits=tuple(_varied(fit, point) for fit in fits)) for point in points]
    return Target(stages=stages, title=title, trials=tuple(trials))


def _varied(fit: FitPlan, point: Mapping[str, Any]) -> FitPlan:
    *first, last = fit.stages
    measured = _measured(selects=last.settings.select_best)
    return replace(
        fit,
        stages=(*(_with(stage, point) for stage in first), _with(last, {**point, **measured})),
        tuned=None,
    )


def _with(stage: StagePlan, settings: Mapping[str, Any]) -> StagePlan:
    return replace(stage, settings=replace(stage.settings, **settings))


def _measured(*, selects: bool) -> dict[str, Any]:
    """Return the settings with which a stage that keeps its last checkpoint is measured once, at its end."""
    return {} if selects else {"select_best": True, "eval_steps": AT_THE_END}


# What it costs ------------------------------------------------------------------------------------------


def cost(targets: Sequence[Target], plan: Plan, adapter: Adapter, store: FitStore) -> Cost:
    """Return the remaining training work of all trials; reads the training sets to count their examples.

    The time is that of the plan's own fits and of finished trials, which train the same model on the same data.
    """
    trials = [fit for target in targets for trial in target.trials for fit in trial.fits]
    stages: dict[str, StagePlan] = {}
    rates: dict[str, float] = {}
    for fit in [*plan.fits, *trials]:
        for digest, stage in zip(store.digests(adapter, fit), fit.stages, strict=True):
            stages[digest] = stage
            record = store.kept(digest) or {}
            if record.get("seconds"):
                rates[stage.name] = record["seconds"] / _steps(stage, record["train"]["examples"])
    needed = {digest for fit in trials for digest in store.digests(adapter, fit)}
    untrained = {digest: stages[digest] for digest in sorted(needed) if store.kept(digest) is None}
    sizes = {
        stage.name: store.sizes(stage)[0]
        for stage in {item.name: item for item in untrained.values()}.values()
    }
    steps = {digest: _steps(stage, sizes[stage.name]) for digest, stage in untrained.items()}
    is_measured = all(stage.name in rates for stage in untrained.values())
    return Cost(
        stages=len(untrained),
        cached=len(needed) - len(untrained),
        steps=sum(steps.values()),
        is_least=any(_has_windows(stage) for stage in untrained.values()),
        seconds=sum(steps[key] * rates[stage.name] for key, stage in untrained.items())
        if is_measured
        else None,
    )


def _steps(stage: StagePlan, examples: int) -> int:
    settings = stage.settings
    return settings.max_steps or math.ceil(settings.epochs * math.ceil(examples / settings.batch_size))


def _has_windows(stage: StagePlan) -> bool:
    return stage.head.head is Head.SPAN_EXTRACTION and stage.settings.max_steps is None


# Trying and choosing ------------------------------------------------------------------------------------


def choose(target: Target, adapter: Adapter, store: FitStore) -> TunedFit:
    """Fit every trial of a target and return the settings with the best mean score over the seeds.

    The first point of the grid wins at ties. Raises `TrainingError` where no point could be trained, and
    `CapabilityError` for a model that reports no dev score.
    """
    measured: dict[str, tuple[str, int]] = {}
    scores = [_try(trial, adapter, store, measured) for trial in target.trials]
    best = max((score.dev for score in scores if score.dev is not None), default=None)
    if best is None:
        raise TrainingError(f"No setting of the grid could be trained on {target.title}: {scores[0].failure}")
    metric, items = next(iter(measured.values()))
    return TunedFit(
        stages=target.stages,
        language=DEV_LANGUAGE,
        items=items,
        metric=metric,
        chosen=next(score.settings for score in scores if score.dev == best),
        scores=tuple(scores),
    )


def _try(trial: Trial, adapter: Adapter, store: FitStore, measured: dict[str, tuple[str, int]]) -> TunedScore:
    settings, by_seed = dict(trial.settings), dict[str, float]()
    digests = tuple(store.digests(adapter, fit)[-1] for fit in trial.fits)
    for fit, digest in zip(trial.fits, digests, strict=True):
        try:
            fitted = store.fit(adapter, fit)
        except TrainingError as error:
            return TunedScore(settings=settings, dev=None, by_seed=by_seed, fits=digests, failure=str(error))
        with closing(fitted.adapter) as model:
            score = model.dev_score() if isinstance(model, HasDevScore) else None
        if score is None:
            name = adapter.identity().get("adapter", "This adapter")
            raise CapabilityError(f"{name!r} reports no score on the dev set of a fit, which tune needs.")
        measured[digest] = (score.metric, fitted.record.stages[-1]["validation"]["examples"])
        by_seed[str(fit.seed)] = score.value
    return TunedScore(settings=settings, dev=fmean(by_seed.values()), by_seed=by_seed, fits=digests)


def tuned_recipe(
    base: RecipeSpec, name: str, model: ModelDescription, chosen: Mapping[Target, TunedFit], tuning: Tuning
) -> RecipeSpec:
    """Return the recipe with the settings that were chosen for each training set."""
    is_large = model.layers is not None and model.layers >= base.large_layers
    stages = dict(base.large_stages if is_large else base.stages)
    for target, fit in chosen.items():
        trial = next(item for item in target.trials if item.settings == fit.chosen)
        for stage in trial.fits[0].stages:
            at_the_end = stage.settings.eval_steps == AT_THE_END
            patch = {**fit.chosen, **(_measured(selects=False) if at_the_end else {})}
            stages[stage.name] = stages.get(stage.name, SettingsPatch()).model_copy(update=patch)
    values = {
        "recipe": name,
        "description": f"The recipe {base.recipe} with settings that were chosen on the English dev set.",
        "source": f"harness tune; {base.recipe}: {base.source}",
        "large_stages" if is_large else "stages": stages,
        "tuned": tuning,
    }
    return base.model_copy(update=values)
