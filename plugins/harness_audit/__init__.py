"""The task audit: scores answers of known worth, and checks data, prompts and label words of tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.registry import TaskChecks


@hookimpl
def harness_register_task_checks() -> Iterable[TaskChecks]:
    """Return the audit; its code is imported when ``harness tasks validate --data`` or a run on local data asks."""
    from harness.registry import TaskChecks

    return [
        TaskChecks(
            name="audit",
            target="harness_audit.auditor:TaskAuditor",
            remarks="harness_audit.damage:item_remarks",
            summary="gold scores 100, trivial answers no more than chance, data and prompts are right",
        )
    ]
