"""A stranger's plugin: a task of a kind that the harness knows, a metric, and a language for XNLI."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable

from harness import hookimpl
from harness.metrics import Metric


@hookimpl
def harness_register_task_specs() -> Iterable[Traversable]:
    """Return the folder of the specs."""
    return [files(__name__) / "specs"]


@hookimpl
def harness_register_metrics() -> Iterable[Metric]:
    """Return the share of rude items that were found."""
    from .metric import RUDE_RECALL

    return [RUDE_RECALL]
