"""Trial answers, each with the most that it may score, and what a metric gives them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness import HarnessError, Metric, MetricContext, MetricResult

__all__ = ["OVERLAP", "ROUNDING", "SURE", "Scored", "Trial", "shuffled"]

SEED = 0
ROUNDING = 1e-9
SURE = 4.0
"""Standard errors by which an answer drawn by chance may be better than its expectation."""
OVERLAP = 0.15
"""What texts that are not the answer may share with it."""
REJECTIONS = (ArithmeticError, HarnessError, LookupError, TypeError, ValueError)
"""What a metric raises for answers that it does not take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One answer per item, and the most that it may score."""

    name: str
    """``gold``, ``the constant 'neutral'``, ``empty answers``."""
    check: str
    """``gold``, ``constant``, ``empty``, ``all labels``, ``truncated``, ``shuffled``, ``reversed`` or ``repeated``."""
    outputs: Sequence[Any]
    ceiling: float
    """As a fraction; for gold, what is expected exactly."""
    rows: Sequence[int] | None = None
    """The items that it is tried on; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What a metric gives a trial."""

    goodness: float | None
    """As a fraction, 1 being best; None where the metric rejects the answers."""
    at_fault: Sequence[str] = ()
    """Ids of the items that lower the score of gold or raise that of another answer; empty where they are not known."""

    @classmethod
    def of(
        cls,
        metric: Metric,
        trial: Trial,
        examples: Sequence[Any],
        references: Sequence[Any],
        context: MetricContext,
    ) -> Scored:
        """Return what a trial scores; items are looked for where it is not what may be expected."""
        rows = range(len(references)) if trial.rows is None else trial.rows
        own = replace(
            context,
            clusters=[examples[row].cluster for row in rows],
            groups=[examples[row].group for row in rows],
            tags=[examples[row].meta for row in rows],
        )
        try:
            result = metric.compute(list(trial.outputs), [references[row] for row in rows], own)
        except REJECTIONS:
            return cls(goodness=None)
        value = result.value if metric.higher_is_better else 1 - result.value
        is_gold = trial.check == "gold"
        if abs(value - 1) <= ROUNDING if is_gold else value <= trial.ceiling + ROUNDING:
            return cls(goodness=value)
        places = _items_at_fault(metric, result, best=1.0 if is_gold else 0.0)
        return cls(goodness=value, at_fault=[examples[rows[place]].id for place in places])


def _items_at_fault(metric: Metric, result: MetricResult, *, best: float) -> list[int]:
    """Return the items that are not scored `best`, or, of sums, those without which the value is nearer to it."""
    goal = best if metric.higher_is_better else 1 - best
    if result.items is not None:
        return [int(place) for place in np.flatnonzero(~(np.abs(result.items - goal) <= ROUNDING))]
    if result.counts is None or metric.from_counts is None:
        return []
    total = result.counts.sum(axis=0)
    away = abs(result.value - goal)
    try:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = [metric.from_counts(total - row) for row in result.counts]
    except REJECTIONS:
        return []
    return [place for place, value in enumerate(values) if abs(value - goal) < away - ROUNDING]


def shuffled(values: Sequence[Any]) -> list[Any]:
    """Return values in another order, always the same one."""
    mixed = list(values)
    random.Random(SEED).shuffle(mixed)  # noqa: S311
    return mixed
