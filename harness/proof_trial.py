"""An answer of which it is known beforehand what it may score, and what a metric gives it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.errors import HarnessError
from harness.metrics.metric import Metric, MetricContext

__all__ = ["OVERLAP", "SURE", "Trial", "goodness", "shuffled"]

SEED = 0
SURE = 4.0
"""Standard errors by which an answer drawn by chance may be better than its expectation."""
OVERLAP = 0.15
"""What texts that are not the answer may share with it."""
REFUSALS = (ArithmeticError, HarnessError, LookupError, TypeError, ValueError)
"""What a metric raises for answers that it does not take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One answer an item, and the most that it may score."""

    name: str
    """``gold``, ``the constant 'neutral'``, ``empty answers``."""
    check: str
    """``gold``, ``constant``, ``empty``, ``all labels``, ``truncated``, ``shuffled``, ``reversed`` or ``repeated``."""
    outputs: Sequence[Any]
    ceiling: float
    """As a fraction; for gold, what is expected exactly."""
    rows: Sequence[int] | None = None
    """The items that it is tried on; None for all."""


def goodness(
    metric: Metric,
    trial: Trial,
    examples: Sequence[Any],
    references: Sequence[Any],
    context: MetricContext,
) -> float | None:
    """Return what a trial scores, as a fraction, 1 being best; None where the metric refuses its answers."""
    rows = range(len(references)) if trial.rows is None else trial.rows
    own = replace(
        context,
        clusters=[examples[row].cluster for row in rows],
        groups=[examples[row].group for row in rows],
        tags=[examples[row].meta for row in rows],
    )
    try:
        value = metric.compute(list(trial.outputs), [references[row] for row in rows], own).value
    except REFUSALS:
        return None
    return value if metric.higher_is_better else 1 - value


def shuffled(values: Sequence[Any]) -> list[Any]:
    """Return values in another order, always the same one."""
    mixed = list(values)
    random.Random(SEED).shuffle(mixed)  # noqa: S311
    return mixed
