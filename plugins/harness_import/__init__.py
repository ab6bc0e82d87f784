"""Run folders from what other harnesses logged; the package of inspect_ai is imported only to read its logs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.specs import TaskSource


@hookimpl
def harness_register_task_sources() -> Iterable[TaskSource]:
    """Return the source of ``logged:NAME``: its metrics are the scores that another harness logged."""
    from harness.specs import TaskSource

    return [
        TaskSource(
            name="logged",
            target="harness_import.logged:SOURCE",
            metric="harness_import.logged:make_metric",
            summary="tasks and scores that 'harness import' took from other harnesses' logs; they cannot be run",
        )
    ]
