"""Downloads what a plan needs, so that it runs without a connection: data, training sets, and the model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from harness.errors import AdapterError, HarnessError
from harness.models.options import options_model
from harness.planning.plan import Model, Plan
from harness.planning.planner import resolve_model
from harness.planning.resolution import cell_data
from harness.planning.run_config import RunConfig
from harness.running.session import Session, prepare

CONVERT = "convert_weights"
"""Option of adapters that convert pickled weights."""


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
        if convert and CONVERT in _option_names(config.model, session):
            config = replace(config, options={**config.options, CONVERT: "true"})
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
