"""Several processes through accelerate and torchrun; this module only declares them."""

from __future__ import annotations

from harness import hookimpl
from harness.registry import Launcher

__all__ = ["harness_register_launchers"]


@hookimpl
def harness_register_launchers() -> list[Launcher]:
    """Return the launcher, without importing torch or accelerate."""
    return [
        Launcher(
            name="accelerate",
            start="harness_accelerate.processes:start",
            join="harness_accelerate.processes:join",
            option="accelerate",
            extra="hf",
        )
    ]
