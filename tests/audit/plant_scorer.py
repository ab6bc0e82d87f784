"""Faults of scorers: answers that say nothing score, or gold does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness.metrics.metric import MetricContext, MetricResult, field_of
from tests.audit.bench import Bench, scorer
from tests.audit.plant import PlantList

PLANTS = PlantList()
planted = PLANTS.planted


def said(prediction: Any) -> str:
    return str(field_of(prediction, "label", 0))


@planted(
    "pawsx", "scorer that looks for the label in the answer", "all labels", "en", seen="inspect_evals `paws`"
)
def substring(bench: Bench) -> None:
    bench.metric = scorer("substring", lambda guess, gold: gold in said(guess))


@planted("xnli", "scorer that takes gold for wrong", "gold", "en")
def inverted_scorer(bench: Bench) -> None:
    bench.metric = scorer("inverted", lambda guess, gold: said(guess) not in {gold, "None", ""})


@planted("xnli", "scorer in per cent instead of a fraction", "gold", "en")
def percent(bench: Bench) -> None:
    bench.metric = scorer("percent", lambda guess, gold: 100.0 * (said(guess) == gold))


@planted("xnli", "scorer that gives no number", "gold", "en")
def no_number(bench: Bench) -> None:
    bench.metric = scorer("nan", lambda guess, gold: float("nan"))


@planted("xnli", "scorer that any label pleases", "constant", "en")
def generous(bench: Bench) -> None:
    labels = {"contradiction", "entailment", "neutral"}
    bench.metric = scorer("generous", lambda guess, gold: said(guess) in labels)


@planted("xnli", "scorer that gives an empty answer the point", "empty", "en")
def lenient(bench: Bench) -> None:
    bench.metric = scorer("lenient", lambda guess, gold: said(guess) in {gold, "", "None"})


@planted("xnli", "scorer that compares sets of answers, not pairs", "shuffled", "en")
def unordered(bench: Bench) -> None:
    def compute(guesses: Sequence[Any], golds: Sequence[Any], context: MetricContext) -> MetricResult:
        met = Counter(map(said, guesses)) & Counter(golds)
        return MetricResult(value=met.total() / len(golds), items=np.zeros(len(golds)))

    bench.metric = replace(scorer("bag", lambda guess, gold: 0), compute=compute)
