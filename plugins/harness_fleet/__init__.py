"""Many models at once: ``harness submit`` and the backend of this machine; this module only declares them."""

from __future__ import annotations

from harness import hookimpl
from harness.registry import FleetBackend

__all__ = ["harness_register_fleet_backends"]


@hookimpl
def harness_register_fleet_backends() -> list[FleetBackend]:
    """Return the backend that runs jobs as processes of this machine."""
    return [
        FleetBackend(
            name="local",
            target="harness_fleet.local:LocalRunner",
            options="harness_fleet.local:LocalOptions",
            summary="processes of this machine",
        )
    ]
