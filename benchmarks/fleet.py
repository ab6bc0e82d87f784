"""A fleet of 200 models x 40 tasks x 100 languages on paper: makespan of our jobs against a job per cell.

    python -m benchmarks.fleet [--models N] [--jobs N] [--workers N] [--items N]

The plans and their division into jobs are real (made-up tasks, one fit each, that 100 languages share); their time and
the size of fleet.json are measured. Running is simulated: workers take the first job whose needs are done, as the
backend `local` does. The durations were measured in single runs on two CPU cores, and are given below with their runs.
"""

from __future__ import annotations

import argparse
import heapq
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.measuring import record
from benchmarks.planning import write_tasks
from harness.planning.plan import Plan
from harness.planning.run_config import RunConfig, data_options
from harness.planning.shards import parse_shard, take_shard
from harness.running.session import open_session, prepare
from harness_fleet.folder import Resources
from harness_fleet.submission import Group, make_fleet, plan_models

TASKS, LANGUAGES = 40, 100
OPENING = 6.2
"""Seconds: SmolLM2-135M on prompts, 5 cells: 298.4 s in all, 292.1 s of them in cells. The process starts besides."""
FIT = 90.8
"""Seconds: multilingual-e5-small, MNLI of the sample (504 examples), recipe quick."""
ITEM = 0.317
"""Seconds: multilingual-e5-small fine-tuned, 246 items of 12 cells in 78.0 s."""
SPEEDS = {"measured (2 CPU cores)": 1.0, "assumed: fits and items 100 times as fast": 100.0}


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker does at a stretch, and the numbers of the tasks that must be done first."""

    seconds: float
    after: tuple[int, ...] = ()


def makespan(tasks: Sequence[Task], workers: int) -> float:
    """Return when the last task ends; a free worker takes the first task whose needs are done."""
    missing = [len(task.after) for task in tasks]
    needed_by: dict[int, list[int]] = {}
    for number, task in enumerate(tasks):
        for other in task.after:
            needed_by.setdefault(other, []).append(number)
    ready = [number for number, count in enumerate(missing) if not count]
    running: list[tuple[float, int]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < workers:
            number = heapq.heappop(ready)
            heapq.heappush(running, (now + tasks[number].seconds, number))
        now, done = heapq.heappop(running)
        for number in needed_by.get(done, ()):
            missing[number] -= 1
            if not missing[number]:
                heapq.heappush(ready, number)
    return now


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds."""

    opening: float
    fit: float
    cell: float


def grouped(plan: Plan, group: Group, costs: Costs) -> list[Task]:
    """Return the jobs of one model as `divide` makes them."""
    names = [one.job.name for one in group.jobs]
    trained: dict[str, str] = {}
    tasks = []
    for one in group.jobs:
        part = plan if one.config.shard is None else take_shard(plan, parse_shard(one.config.shard))
        own = [fit.key for fit in part.fits if fit.key not in trained]
        if one.job.fits_only:
            trained.update(dict.fromkeys(own, one.job.name))
        seconds = costs.opening + costs.fit * len(own) + costs.cell * one.job.cells
        tasks.append(Task(seconds, tuple(names.index(name) for name in one.job.after)))
    return tasks


def per_cell(plan: Plan, costs: Costs) -> list[Task]:
    """Return a job for each fit, and a job for each cell that waits for its fit."""
    tasks: list[Task] = []
    for fit, cells in plan.groups():
        first = len(tasks)
        if fit is not None:
            tasks.append(Task(costs.opening + costs.fit))
        after = () if fit is None else (first,)
        tasks += [Task(costs.opening + costs.cell, after)] * len(cells)
    return tasks


def repeated(tasks: Sequence[Task], models: int) -> Iterator[Task]:
    """Yield the tasks of so many models with equal plans, those first that others wait for."""
    order = sorted(range(len(tasks)), key=lambda number: bool(tasks[number].after))
    place = {number: rank for rank, number in enumerate(order)}
    for model in range(models):
        for number in order:
            start = model * len(tasks)
            yield replace(tasks[number], after=tuple(start + place[one] for one in tasks[number].after))


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="Makespan of a fleet, planned for real and run on paper.")
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=4, help="at most so many jobs per model")
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--items", type=int, default=100, help="items of a cell")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["HARNESS_CACHE"] = str(folder / "cache")
        write_tasks(folder, TASKS, LANGUAGES)
        session = open_session([folder / "specs"])
        config = RunConfig(
            tasks=tuple(f"made-{number}" for number in range(TASKS)),
            tasks_from=(folder / "specs",),
            model="baseline:majority",
            data=data_options([folder]),
        )
        plan = prepare(config, session).plan
        started = time.perf_counter()
        groups, errors = plan_models([config] * given.models, session, given.jobs)
        assert not errors, errors
        seconds = time.perf_counter() - started
        fleet = make_fleet(folder / "fleet", groups, "local", {}, Resources())
        written = time.perf_counter() - started - seconds
        size = (fleet.path / "fleet.json").stat().st_size
        cells, jobs = sum(group.model.cells for group in groups), len(fleet.file.jobs)
        print(
            f"{given.models} models x {TASKS} tasks x {LANGUAGES} languages: {cells:,} cells in {jobs:,} jobs"
        )
        print(
            f"planned in {seconds:.0f} s ({seconds / given.models:.2f} s a model), written in {written:.1f} s; "
            f"fleet.json {size / 1000:,.0f} kB"
        )
        for title, speed in SPEEDS.items():
            costs = Costs(opening=OPENING, fit=FIT / speed, cell=given.items * ITEM / speed)
            show(title, plan, groups[0], costs, given)


def show(title: str, plan: Plan, group: Group, costs: Costs, given: argparse.Namespace) -> None:
    """Print the makespan of both ways, and their ratio."""
    ours = list(repeated(grouped(plan, group, costs), given.models))
    naive = list(repeated(per_cell(plan, costs), given.models))
    mine, other = makespan(ours, given.workers), makespan(naive, given.workers)
    work = sum(task.seconds for task in ours) / given.workers
    print(
        f"{title}, {given.workers} workers: {mine / 3600:,.1f} h in {len(ours):,} jobs; a job per fit and per cell "
        f"{other / 3600:,.1f} h in {len(naive):,} jobs; ratio {other / mine:.2f}; "
        f"busy {work / mine:.0%} of the time"
    )
    record(f"fleet, {title}: makespan of a job per cell / ours", other / mine)


if __name__ == "__main__":
    main()
