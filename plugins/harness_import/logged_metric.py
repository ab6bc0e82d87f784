"""The scores that another harness logged, as metrics ``logged:NAME``: read from the records, never computed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from harness import UsageError
from harness.metrics import METRICS, Metric, MetricContext, MetricResult, check_pairs
from harness.specs import MadeTask

PREFIX: Final = "logged:"
KIND: Final = "logged_answers"
"""The kind of tasks that no spec describes."""
KINDS: Final = frozenset({KIND}).union(*(metric.kinds for metric in METRICS))


class LoggedTasks:
    """The source of tasks ``logged:NAME``, which have answers and no prompts: none can be run."""

    def names(self, pattern: str) -> Sequence[str]:
        """Raise `UsageError`: a log holds answers, not what would be asked."""
        raise UsageError(
            f"The task 'logged:{pattern}' cannot be run: tasks of this name exist in imported runs alone.",
            hint="Run the task in the harness that logged it, and read the log with 'harness import'.",
        )

    def document(self, name: str, shots: int) -> MadeTask:
        """Raise `UsageError` as `names` does."""
        raise UsageError(f"The task 'logged:{name}' cannot be run.")


SOURCE: Final = LoggedTasks()


def make_metric(name: str) -> Metric:
    """Return the metric of a name ``logged:METRIC``: the mean over items of what the log says."""
    return Metric(
        name=name,
        compute=partial(_compute, name.removeprefix(PREFIX)),
        kinds=KINDS,
        description=f"{name.removeprefix(PREFIX)} as the log has it.",
        source="the log that was imported",
        by_item=True,
    )


def _compute(
    name: str, predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
) -> MetricResult:
    """Return the mean of what was logged; raises `ValueError` for a prediction without it."""
    check_pairs(predictions, references)
    try:
        items = np.array([prediction["logged"][name] for prediction in predictions], dtype=np.float64)
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"no log gave these answers the score {name!r}; it is of imported answers alone"
        ) from error
    return MetricResult(value=float(items.mean()), items=items)
