"""Instructions that a program can check: rules of IFEval that know languages, over one turn or several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.data import Reader
    from harness.kinds import Method, TaskKind
    from harness.metrics import Metric


@hookimpl
def harness_register_kinds() -> Iterable[TaskKind]:
    """Return the kind of prompts with instructions that are checked."""
    from harness_instructions.kind import KIND

    return [KIND]


@hookimpl
def harness_register_methods() -> Iterable[Method]:
    """Return how a model is asked: it writes an answer to every turn."""
    from harness_instructions.kind import METHODS

    return METHODS


@hookimpl
def harness_register_metrics() -> Iterable[Metric]:
    """Return the four accuracies of IFEval."""
    from harness_instructions.metrics import METRICS

    return METRICS


@hookimpl
def harness_register_readers() -> Iterable[Reader]:
    """Return the readers of Marco-Bench-MIF and Multi-IF."""
    from harness_instructions.kind import READERS

    return READERS
