"""Makes a fleet of planned models, and runs its jobs through its backend."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness import HarnessError, UsageError
from harness.cli import echo
from harness.registry import JobRunner, installed_version
from harness.running import Interruption
from harness_fleet.fleet_file import FleetFile, Resources
from harness_fleet.folder import Consent, Fleet
from harness_fleet.grouping import Group
from harness_fleet.job import now
from harness_fleet.state import forget, job_states
from harness_fleet.watching import watching


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
        with interruption.listening(), watching(fleet, job_states(fleet)) as report:
            runner.run(jobs, report, interruption.requested)
    except HarnessError as error:
        error.hint = " ".join(filter(None, (error.hint, f"Then: harness submit retry {fleet.path}")))
        raise
    finally:
        lock.release()
    return interruption.requested()
