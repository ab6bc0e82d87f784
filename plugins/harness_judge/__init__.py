"""The judge: answers of finished runs, rated by a second model. A judgement is a task, so `harness eval` asks it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.kinds import Method, TaskKind
    from harness.metrics import Metric


@hookimpl
def harness_register_kinds() -> Iterable[TaskKind]:
    """Return the kind of judged answers."""
    from harness_judge.kind import KIND

    return [KIND]


@hookimpl
def harness_register_methods() -> Iterable[Method]:
    """Return how a judge is asked: it ranks the verdicts, or writes one."""
    from harness_judge.kind import METHODS

    return METHODS


@hookimpl
def harness_register_metrics() -> Iterable[Metric]:
    """Return the ratings, the agreement with gold, and the comparison of two runs."""
    from harness_judge.kind import METRICS

    return METRICS
