"""Baselines that need no download: the majority class, a random guess, and linear models over n-grams."""

from __future__ import annotations

from harness import hookimpl
from harness.models import AdapterEntry

__all__ = ["BASELINE", "harness_register_adapters"]

BASELINE = AdapterEntry(
    name="baseline",
    target="harness_baseline.model:open_baseline",
    describe="harness_baseline.description:describe",
    options="harness_baseline.description:BaselineOptions",
    summary="Majority class, random guess, or linear models over character n-grams; no download.",
    examples=("baseline:majority", "baseline:random", "baseline:char-ngram"),
    baselines=("baseline:majority", "baseline:char-ngram"),
)


@hookimpl
def harness_register_adapters() -> list[AdapterEntry]:
    """Return the declaration of the adapter ``baseline``."""
    return [BASELINE]
