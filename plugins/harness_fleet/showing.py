"""Output of ``harness submit`` and its commands: the plan, the state, missing cells, the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness import Run
from harness.cli import echo, print_table, show_runs
from harness.registry import JobState
from harness.reporting import counted
from harness_fleet.folder import Fleet
from harness_fleet.state import Collected, Gap, count_cells, state_counts
from harness_fleet.submission import BROKEN, Group, job_line

SHOWN = 8
"""Cells of a reason, and jobs that broke, that are listed."""


def show_groups(groups: Sequence[Group]) -> None:
    """Print what will be run, to stderr."""
    rows = [
        (
            group.model.model,
            f"{group.model.cells:,}",
            f"{group.model.fits:,}",
            f"{len(group.jobs):,}",
            f"{group.model.skipped:,}",
        )
        for group in groups
    ]
    print_table(("model", "cells", "fits", "jobs", "skipped"), rows, err=True)
    if any(group.model.skipped for group in groups):
        echo("Why cells are skipped: harness plan with the same options and one --model.", err=True)


def status_rows(fleet: Fleet, states: Mapping[str, JobState]) -> list[dict[str, Any]]:
    """Return a row for each model: its cells, and the states of its jobs."""
    rows = []
    for model in fleet.file.models:
        count = count_cells(fleet, fleet.jobs_of(model))
        job_states = {job.name: str(states[job.name]) for job in fleet.file.jobs if job.model == model.name}
        cells = {"planned": count.planned, "done": count.done, "failed": count.failed}
        rows.append({"model": model.model, "name": model.name, **cells, "jobs": job_states})
    return rows


def show_status(fleet: Fleet, states: Mapping[str, JobState], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the states of the jobs, the cells by model, and why jobs broke."""
    echo(f"Jobs: {state_counts(states)}")
    table = [
        (
            row["model"],
            f"{row['done']:,} of {row['planned']:,}",
            f"{row['failed']:,}",
            state_counts({name: JobState(state) for name, state in row["jobs"].items()}),
        )
        for row in rows
    ]
    print_table(("model", "cells done", "failed", "jobs"), table)
    broken = [name for name, state in states.items() if state in BROKEN]
    for name in broken[:SHOWN]:
        echo(job_line(fleet, name, states[name]))
    if len(broken) > SHOWN:
        echo(f"and {len(broken) - SHOWN} more; every job has its log in {fleet.path / 'jobs'}")
    echo(_next_step(fleet, states, failed=any(row["failed"] for row in rows)))


def _next_step(fleet: Fleet, states: Mapping[str, JobState], *, failed: bool) -> str:
    present = set(states.values())
    held = fleet.lock().is_held()
    if JobState.RUNNING in present or (held and JobState.WAITING in present):
        return f"It is running. What is done so far: harness submit collect {fleet.path}"
    if present == {JobState.DONE} and not failed:
        return f"Results: harness submit collect {fleet.path}"
    return f"Run again what is not done: harness submit retry {fleet.path}"


def show_gaps(fleet: Fleet, gaps: Sequence[Gap]) -> int:
    """Print what is missing or failed, and return the exit status: 1 where anything is."""
    for gap in gaps:
        more = f" and {len(gap.cells) - SHOWN} more" if len(gap.cells) > SHOWN else ""
        cells = f"{', '.join(gap.cells[:SHOWN])}{more}"
        echo(f"{gap.model}: {counted(gap.count, 'cell')} without a score ({cells}): {gap.reason}")
    if gaps:
        echo(f"Run again what is not done: harness submit retry {fleet.path}")
    else:
        echo(f"Every cell of {counted(len(fleet.file.models), 'model')} has a score.")
    return int(bool(gaps))


def show_results(collected: Collected) -> None:
    """Print a summary of the runs of all models, and which folders they are."""
    for note in collected.notes:
        echo(f"Note: {note}.", err=True)
    if collected.runs:
        show_runs([Run(path) for path in collected.runs], details=False)
        echo(f"Run folders, for harness report and harness board: {' '.join(map(str, collected.runs))}")
