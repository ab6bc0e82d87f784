"""Divides the plans of many models into jobs, and runs them through the backend that ``--backend`` names.

A job opens one model once; a fit that several need has a job of its own. While jobs run, a few lines show them: drawn
again in a terminal, or a line per change.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.live import Live
from rich.text import Text

from harness import HarnessError, UnknownNameError, UsageError, require_extra, show_step
from harness.cli import echo, printable, stderr
from harness.planning import Plan, RunConfig, Shard, require_cells, shard_sizes, shared_fits
from harness.registry import FleetBackend, JobRunner, JobState, installed_version
from harness.running import Interruption, Session, make_metrics_ready, prepare
from harness_fleet.folder import Consent, Fleet, FleetFile, FleetModel, PlannedJob, Resources, safe_name
from harness_fleet.job import now
from harness_fleet.state import count_cells, forget, job_states, last_line, read_status, state_counts

ENDED = frozenset({JobState.DONE, JobState.FAILED, JobState.LOST})
BROKEN = frozenset({JobState.FAILED, JobState.LOST})
SHOWN = 10
"""Running models that a terminal shows."""


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


def open_backend(session: Session, name: str, options: Mapping[str, str]) -> JobRunner:
    """Return the backend of a name, opened with its options.

    Raises:
        UnknownNameError: For a backend or an option that there is not, with near names.
        UsageError: For an option with another value.
        MissingExtraError: Where its package is not installed.
    """
    backend = session.registry.fleet_backends.get(name)
    model = _load(backend, backend.options)
    for key in options:
        if key not in model.model_fields:
            raise UnknownNameError(f"option of the backend {name!r}", key, model.model_fields)
    try:
        read = model.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"The option {option!r} of the backend {name!r} got {first.get('input')!r}: {first['msg']}."
        ) from error
    runner: JobRunner = _load(backend, backend.target)(read)
    return runner


def _load(backend: FleetBackend, target: str) -> Any:
    module, _, attribute = target.partition(":")
    with require_extra(f"The backend {backend.name!r}", backend.extra, target):
        return getattr(importlib.import_module(module), attribute)


@contextmanager
def _watching(fleet: Fleet, states: Mapping[str, JobState]) -> Iterator[Callable[[str, JobState], None]]:
    """Yield the function that takes changes of states and shows them on stderr."""
    current = dict(states)
    console = stderr()
    in_terminal = console.is_terminal and sys.stderr.isatty() and not console.is_dumb_terminal

    def report(name: str, state: JobState) -> None:
        current[name] = state
        if state in BROKEN or (state is not JobState.WAITING and not in_terminal):
            ended = sum(state in ENDED for state in current.values())
            echo(f"[{ended}/{len(current)}] {job_line(fleet, name, state)}", err=True)

    if not in_terminal:
        yield report
        return
    with Live(
        console=console,
        get_renderable=lambda: _lines(fleet, current),
        refresh_per_second=1,
        transient=True,
    ):
        yield report


def job_line(fleet: Fleet, name: str, state: JobState) -> str:
    """Return a job with its state; where it broke, with the last line that it printed."""
    if state not in BROKEN:
        return f"{name}: {state}"
    folder = fleet.folder(name)
    status = read_status(folder)
    if status is None:
        return f"{name}: not started: a job that it needs failed"
    outcome = "interrupted" if state is JobState.LOST and "code" in status else state
    return f"{name}: {outcome}: {last_line(folder) or f'it printed nothing; its folder is {folder}'}"


def _lines(fleet: Fleet, states: Mapping[str, JobState]) -> Text:
    lines = [f"Jobs: {state_counts(states)}"]
    running = {name for name, state in states.items() if state is JobState.RUNNING}
    busy = {job.model for job in fleet.file.jobs if job.name in running}
    models = [model for model in fleet.file.models if model.name in busy]
    for model in models[:SHOWN]:
        count = count_cells(fleet, fleet.jobs_of(model))
        failed = f", {count.failed:,} failed" if count.failed else ""
        lines.append(f"  {printable(model.model)}: {count.done:,} of {count.planned:,} cells{failed}")
    if len(models) > SHOWN:
        lines.append(f"  and {len(models) - SHOWN} more models")
    return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")


def make_fleet(
    folder: Path,
    groups: Sequence[Group],
    backend: str,
    options: Mapping[str, str],
    resources: Resources,
) -> Fleet:
    """Write the folder of a fleet and return it; raises `UsageError` where that is not possible."""
    # First what others wait for.
    jobs = sorted((run for group in groups for run in group.jobs), key=lambda run: not run.job.fits_only)
    file = FleetFile(
        schema=1,
        created=now(),
        harness=installed_version("multilingual-harness"),
        command=tuple(sys.argv),
        backend=backend,
        backend_options=dict(options),
        resources=resources,
        models=tuple(group.model for group in groups),
        jobs=tuple(run.job for run in jobs),
    )
    return Fleet.create(folder, file, [run.config for run in jobs])


def start_jobs(fleet: Fleet, runner: JobRunner, consent: Consent, names: Sequence[str] | None = None) -> bool:
    """Run jobs, all or those with these names, and return whether this process was interrupted meanwhile.

    Raises:
        UsageError: While another command runs the fleet's jobs.
        HarnessError: Where the backend cannot run them.
    """
    jobs = fleet.jobs(consent, names)
    lock = fleet.lock()
    if not lock.acquire():
        raise UsageError(
            f"The fleet {str(fleet.path)!r} is run by {lock.holder()}.",
            hint=f"See it with: harness submit status {fleet.path}",
        )
    interruption = Interruption(
        lambda _: echo("Stopping the jobs. Press Ctrl-C again to stop at once.", err=True)
    )
    try:
        for job in jobs:
            forget(fleet, job.name)
        with interruption.listening(), _watching(fleet, job_states(fleet)) as report:
            runner.run(jobs, report, interruption.requested)
    except HarnessError as error:
        error.hint = " ".join(filter(None, (error.hint, f"Then: harness submit retry {fleet.path}")))
        raise
    finally:
        lock.release()
    return interruption.requested()
