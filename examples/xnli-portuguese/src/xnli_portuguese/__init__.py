"""Portuguese for the task XNLI, as a plugin of the harness."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable

from harness import hookimpl


@hookimpl
def harness_register_task_specs() -> Iterable[Traversable]:
    """Return the folder with the language and the words of its prompt."""
    return [files("xnli_portuguese") / "specs"]
