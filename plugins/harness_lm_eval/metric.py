"""The metrics ``lm_eval:NAME``: the item scores of lm-eval, aggregated as lm-eval does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from harness import Metric, MetricContext, MetricResult, check_pairs
from harness_lm_eval.task_document import GENERATION, LIKELIHOOD

__all__ = ["make_metric", "result_key"]

PERCENT = frozenset({"bleu", "chrf", "chrf++"})
"""Aggregations of lm-eval that go up to 100; ours are fractions."""


def make_metric(name: str) -> Metric:
    """Return the metric of a name ``lm_eval:METRIC`` or ``lm_eval:METRIC,FILTER``."""
    return Metric(
        name=name,
        compute=partial(_compute, name),
        kinds=frozenset({LIKELIHOOD, GENERATION}),
        description=f"{result_key(name)} as lm-evaluation-harness computes it.",
        source="https://github.com/EleutherAI/lm-evaluation-harness",
    )


def result_key(name: str) -> str:
    """Return lm-eval's key of a metric: ``acc,none`` for ``lm_eval:acc``."""
    key = name.partition(":")[2]
    return key if "," in key else f"{key},none"


def _compute(
    name: str, predictions: Sequence[Any], references: Sequence[Any], context: MetricContext
) -> MetricResult:
    """Return lm-eval's aggregate; a mean also has its items. Raises `ValueError` for values outside of [-1, 1].

    As in lm-eval, documents without the metric do not count; then there is no interval.
    """
    check_pairs(predictions, references)
    key = result_key(name)
    values = [prediction["metrics"][key] for prediction in predictions if key in prediction["metrics"]]
    aggregation = context.options.get(name, "mean")
    if not values:
        raise ValueError(f"lm-eval gave no item the metric {key!r}")
    if aggregation == "mean":
        items = np.asarray(values, dtype=np.float64)
        value = float(items.mean())
    else:
        from harness_lm_eval.live_task import aggregated

        items = None
        value = aggregated(aggregation, key, values) / (100 if aggregation in PERCENT else 1)
    if not math.isfinite(value) or not -1 <= value <= 1:
        raise ValueError(f"{key!r} is {value:g}, which is no share of the items; expected at most 1")
    complete = items is not None and len(values) == len(predictions)
    return MetricResult(value=value, items=items if complete else None)
