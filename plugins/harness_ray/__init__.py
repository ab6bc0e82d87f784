"""The fleet backend of Ray: jobs on a laptop or a cluster, vLLM servers as actors; this module only declares it."""

from __future__ import annotations

from harness import hookimpl
from harness.registry import FleetBackend

__all__ = ["harness_register_fleet_backends"]


@hookimpl
def harness_register_fleet_backends() -> list[FleetBackend]:
    """Return the backend, without importing ray."""
    return [
        FleetBackend(
            name="ray",
            target="harness_ray.backend:RayRunner",
            options="harness_ray.options:RayOptions",
            summary="a Ray cluster, or Ray on this machine",
            extra="ray",
        )
    ]
