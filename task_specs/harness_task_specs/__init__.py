"""The task specs that ship with the harness, their training sets, recipes and embedded sample."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable

from harness import hookimpl


@hookimpl
def harness_register_task_specs() -> Iterable[Traversable]:
    """Return the folder of this package."""
    return [files(__name__)]
