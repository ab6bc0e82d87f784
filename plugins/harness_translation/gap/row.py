"""Gaps as rows of plain values, fractions in [0, 1], for ``harness gap --json``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harness_translation.gap.correlation import Correlation
from harness_translation.gap.measure import GapValue, SystemGaps
from harness_translation.gap.pretraining import pretraining_size
from harness_translation.gap.system import GapSystem

__all__ = ["gap_rows"]


def gap_rows(found: Sequence[SystemGaps], order: str) -> list[dict[str, Any]]:
    """Return one row per system, metric, quantity, translator and language (None for a mean), then the correlations."""
    return [row for gaps in found for row in (*_values(gaps, order), *_correlations(gaps))]


def _head(system: GapSystem, metric: str) -> dict[str, Any]:
    return {
        "task": system.task,
        "model": system.model,
        "train": system.train,
        "conditions": dict(system.conditions),
        "metric": metric,
    }


def _values(gaps: SystemGaps, order: str) -> Iterable[dict[str, Any]]:
    for value in gaps.values:
        yield {
            **_head(gaps.system, gaps.metric),
            "quantity": value.quantity,
            "translator": value.translator or None,
            "language": value.language,
            "languages": list(value.languages),
            "resource_class": value.resource_class,
            **_size(value, order),
            "subset": value.subset,
            **_estimate(value),
            "seeds": list(gaps.system.seeds),
            "flagged": value.flagged,
            "unfair": value.unfair or None,
        }


def _size(value: GapValue, order: str) -> dict[str, Any]:
    size = None if value.language is None else pretraining_size(value.language, order)
    return {
        "pretraining_size": None if size is None else size.value,
        "pretraining_unit": None if size is None else size.unit,
        "pretraining_source": None if size is None else size.source,
    }


def _estimate(value: GapValue) -> dict[str, Any]:
    interval = value.estimate.interval
    return {
        "value": value.estimate.value,
        "se": interval.se,
        "ci_low": interval.low,
        "ci_high": interval.high,
        "ci_method": interval.method,
        "n": value.items,
        "clusters": interval.groups,
        "seed_sd": value.estimate.seed_sd,
    }


def _correlations(gaps: SystemGaps) -> Iterable[dict[str, Any]]:
    for own in gaps.correlations:
        yield {**_head(gaps.system, gaps.metric), **_correlation(own)}


def _correlation(own: Correlation) -> dict[str, Any]:
    return {
        "quantity": f"rank_correlation_{own.quantity}",
        "translator": own.translator or None,
        "language": None,
        "languages": list(own.languages),
        "value": own.rho,
        "ci_low": own.low,
        "ci_high": own.high,
        "ci_method": "Bonett and Wright, over languages",
        "p": own.p,
        "item_ci_low": own.item_low,
        "item_ci_high": own.item_high,
    }
