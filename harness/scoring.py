"""From predictions and references to the metrics of a cell. Needs no model and no data files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.errors import HarnessError
from harness.metrics.metric import GroupScore, Metric, MetricContext
from harness.statistics import clustered_mean

__all__ = ["CellScores", "MetricScore", "ScoreInput", "score_cell"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreInput:
    """One item as the records keep it."""

    id: str
    prediction: Any
    reference: Any
    cluster: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricScore:
    """A metric of a cell, as a fraction; `se` and the interval are None for set-level metrics."""

    value: float
    se: float | None
    low: float | None
    high: float | None
    ci_method: str | None
    groups: Mapping[str, GroupScore] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the form that ``results.json`` keeps."""
        interval = None if self.low is None or self.high is None else [self.low, self.high]
        shown: dict[str, Any] = {
            "value": self.value,
            "se": self.se,
            "ci": interval,
            "ci_method": self.ci_method,
        }
        if self.groups:
            shown["groups"] = {
                name: {"value": group.value, "n": group.n} for name, group in self.groups.items()
            }
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class CellScores:
    """The metrics of a cell, and what each item contributed."""

    metrics: Mapping[str, MetricScore]
    items: Mapping[str, list[Any]] = field(default_factory=dict)
    """By metric: a float an item, or its list of sufficient statistics."""


def score_cell(metrics: Sequence[Metric], items: Sequence[ScoreInput], context: MetricContext) -> CellScores:
    """Return the scores of the labelled items; raises `HarnessError` where predictions do not fit references."""
    labelled = [item for item in items if item.reference is not None]
    if not labelled:
        return CellScores(metrics={})
    predictions = [item.prediction for item in labelled]
    references = [item.reference for item in labelled]
    clusters = [item.cluster for item in labelled]
    scores: dict[str, MetricScore] = {}
    contributions: dict[str, list[Any]] = {}
    for metric in metrics:
        try:
            result = metric.compute(predictions, references, context)
        except ValueError as error:
            raise HarnessError(
                f"The metric {metric.name!r} cannot score these predictions: {str(error).rstrip('.')}."
            ) from error
        se = low = high = ci_method = None
        if result.items is not None:
            interval = clustered_mean(result.items, clusters)
            se, low, high, ci_method = interval.se, interval.low, interval.high, interval.method
            contributions[metric.name] = result.items.tolist()
        elif result.counts is not None:
            contributions[metric.name] = result.counts.tolist()
        scores[metric.name] = MetricScore(
            value=result.value, se=se, low=low, high=high, ci_method=ci_method, groups=result.groups
        )
    return CellScores(metrics=scores, items=contributions)
