"""Machine translation, as a plugin of the harness: a kind, its method, a metric, a baseline, and a task."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

from harness import hookimpl
from harness.kinds import Method
from harness.metrics import Metric
from harness.models import AdapterEntry

if TYPE_CHECKING:
    from harness.kinds import TaskKind

COPY = AdapterEntry(
    name="copy",
    target="machine_translation.copying:Copy",
    describe="machine_translation.declaration:describe",
    options="harness.models:AdapterOptions",
    summary="The prompt itself: what a translation must beat.",
    examples=("copy:prompt",),
)


@hookimpl
def harness_register_task_specs() -> Iterable[Traversable]:
    """Return the folder with the task and its prompts."""
    return [files("machine_translation") / "specs"]


@hookimpl
def harness_register_kinds() -> Iterable[TaskKind]:
    """Return the kind ``machine_translation``."""
    from machine_translation.kind import KIND

    return [KIND]


@hookimpl
def harness_register_methods() -> Iterable[Method]:
    """Return the one way to do it: a model that writes text."""
    from machine_translation.kind import METHODS

    return METHODS


@hookimpl
def harness_register_metrics() -> Iterable[Metric]:
    """Return the metric ``chrf_pp``."""
    from machine_translation.metric import CHRF_PP

    return [CHRF_PP]


@hookimpl
def harness_register_adapters() -> Iterable[AdapterEntry]:
    """Return the baseline; it names its code, which is imported when it is opened."""
    return [COPY]
