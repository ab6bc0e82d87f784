"""Metrics whose scores another program gave (COMET, MetricX): they are kept with the answers, so nothing is run here.

They are named ``command:NAME``. `harness.analysis.metric_process` asks the program, once per answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from harness.errors import UsageError
from harness.metrics.metric import Metric, MetricContext, MetricResult
from harness.metrics.pairing import check_pairs

__all__ = ["COMMAND", "COMMAND_KINDS", "COMMAND_SCORES", "command_metric"]

COMMAND = "command"
COMMAND_KINDS = frozenset({"translation", "summary"})
COMMAND_SCORES = "command_scores"
"""The key of an answer with its scores, by the name of the metric."""


def command_metric(name: str) -> Metric:
    """Return the metric of a name ``command:NAME``; its signature is the option of a task with its whole name."""

    def signature(context: MetricContext) -> str:
        return str(context.options.get(name, ""))

    return Metric(
        name=name,
        compute=partial(_compute, name),
        kinds=COMMAND_KINDS,
        description=f"Mean of the scores of a program that a user named {name.partition(':')[2]!r}.",
        source="the program's own; its signature is in the results",
        by_item=True,
        ready=partial(_require_command, name),
        signature=signature,
    )


def _require_command(name: str) -> None:
    own = name.partition(":")[2]
    raise UsageError(
        f"The metric {name!r} is computed by a program of yours, after the run.",
        hint=f"Give its command: harness score RUN --metric {own}='python comet_driver.py'",
    )


def _compute(
    name: str, predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
) -> MetricResult:
    check_pairs(predictions, references)
    own = name.partition(":")[2]
    scores = []
    for prediction in predictions:
        kept = prediction.get(COMMAND_SCORES, {}) if isinstance(prediction, Mapping) else {}
        if own not in kept:
            raise ValueError(f"some have no score yet; run 'harness score RUN --metric {own}=COMMAND' again")
        scores.append(float(kept[own]))
    items = np.asarray(scores, dtype=np.float64)
    return MetricResult(value=float(items.mean()), items=items)
