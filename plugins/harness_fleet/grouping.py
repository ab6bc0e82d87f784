"""Divides the plans of many models into jobs: each opens one model once, and a fit that several need has its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness import HarnessError, show_step
from harness.planning import Plan, RunConfig, Shard, require_cells, shard_sizes, shared_fits
from harness.running import Session, make_metrics_ready, prepare
from harness_fleet.fleet_file import FleetModel, PlannedJob, safe_name


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A job and what its run is asked to do."""

    job: PlannedJob
    config: RunConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A model with its jobs."""

    model: FleetModel
    jobs: tuple[PlannedRun, ...]


def plan_models(
    configs: Sequence[RunConfig], session: Session, jobs: int
) -> tuple[list[Group], dict[str, HarnessError]]:
    """Return the jobs of every model, and by model the errors of those that cannot be evaluated.

    Args:
        configs: One for each model.
        session: The plugins and specs.
        jobs: The largest number of jobs that evaluate one model.
    """
    groups: list[Group] = []
    errors: dict[str, HarnessError] = {}
    for number, config in enumerate(configs, start=1):
        show_step(f"planning model {number:,} of {len(configs):,}")
        try:
            prepared = prepare(config, session)
            require_cells(prepared.plan)
            make_metrics_ready(prepared)
            prepared.plan.model.entry.make_ready()
        except HarnessError as error:
            errors[config.model] = error
            continue
        groups.append(divide(prepared.plan, config, safe_name(number, config.model), jobs))
    return groups, errors


def divide(plan: Plan, config: RunConfig, name: str, jobs: int) -> Group:
    """Return the jobs of one model.

    Its cells are divided as ``--shard`` does, which keeps the cells of a fit together where it can. A fit that several
    shards still need is trained by a job of its own first: a run of one of the fit's cells that scores nothing.
    """
    count = min(jobs, len(plan.cells))
    model = FleetModel(
        name=name,
        model=config.model,
        cells=len(plan.cells),
        fits=len(plan.fits),
        skipped=len(plan.skipped),
        shards=count,
    )
    if count == 1:
        single = PlannedJob(name=name, model=name, cells=len(plan.cells))
        return Group(model=model, jobs=(PlannedRun(job=single, config=config),))
    runs: list[PlannedRun] = []
    after: dict[int, list[str]] = {}
    for number, shared in enumerate(shared_fits(plan, count), start=1):
        job = PlannedJob(name=f"{name}-fit-{number}", model=name, cells=0)
        runs.append(PlannedRun(job=job, config=replace(config, shard=str(shared.alone), fits_only=True)))
        for dependent in shared.shards:
            after.setdefault(dependent, []).append(job.name)
    for index, cells in enumerate(shard_sizes(plan, count), start=1):
        needed = tuple(after.get(index, ()))
        job = PlannedJob(name=f"{name}-{index}-of-{count}", model=name, cells=cells, after=needed)
        shard = Shard(index=index, count=count)
        runs.append(PlannedRun(job=job, config=replace(config, shard=str(shard))))
    return Group(model=model, jobs=tuple(runs))
