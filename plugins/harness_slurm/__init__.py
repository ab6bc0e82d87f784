"""The fleet backend of Slurm; this module only declares it."""

from __future__ import annotations

from harness import hookimpl
from harness.registry import FleetBackend

__all__ = ["harness_register_fleet_backends"]


@hookimpl
def harness_register_fleet_backends() -> list[FleetBackend]:
    """Return the backend, without importing submitit."""
    return [
        FleetBackend(
            name="slurm",
            target="harness_slurm.runner:SlurmRunner",
            options="harness_slurm.options:SlurmOptions",
            summary="job arrays of a Slurm cluster, which continue without this process",
            extra="slurm",
        )
    ]
