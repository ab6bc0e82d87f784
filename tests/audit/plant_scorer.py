"""Faults of scorers: answers that say nothing score, or gold does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from harness.metrics.metric import MetricContext, MetricResult
from harness.metrics.pairing import field_of
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


@planted(
    "udpos", "accuracy over the shorter of answer and gold", "truncated", "en", seen="lm-eval `masakhapos`"
)
def shorter(bench: Bench) -> None:
    def share(guess: Sequence[str], gold: Sequence[str]) -> float:
        pairs = list(zip(guess, gold, strict=False))
        return sum(one == other for one, other in pairs) / len(pairs) if pairs else 0.0

    bench.metric = scorer("cut", share)


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


@planted("xquad", "scorer that takes the beginning of an answer for it", "truncated", "en")
def prefix(bench: Bench) -> None:
    bench.metric = scorer(
        "prefix", lambda guess, gold: bool(guess["text"]) and gold[0].startswith(guess["text"].strip()), "f1"
    )


@planted("xquad", "F1 that splits Chinese at spaces", "parts", "zh", seen="lm-eval `xquad`", note=True)
def spaces(bench: Bench) -> None:
    """Nothing is changed: it is the published metric."""


@planted("wikiann_raw", "names compared as a set of texts", "truncated", "en", seen="lm-eval `masakhaner`")
def unique_names(bench: Bench) -> None:
    def twice(row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "tokens": row["tokens"] * 2, "tags": row["tags"] * 2}

    bench.change("wikiann/en", twice)

    def same(guess: Any, gold: Any) -> float:
        lengths = [{(end - start, tag) for start, end, tag in own} for own in (guess["spans"], gold)]
        return float(lengths[0] == lengths[1])

    bench.metric = scorer("names", same, "span_f1")


@planted("wikiann_raw", "names found again by substring", "truncated", "en", seen="EuroEval's NER")
def part_of_name(bench: Bench) -> None:
    def inside(guess: Any, gold: Any) -> float:
        found = [any(a <= start and end <= b for start, end, _ in guess["spans"]) for a, b, _ in gold]
        return sum(found) / len(found) if found else 1.0

    bench.metric = scorer("inside", inside, "span_f1")


@planted("lareqa", "recall that does not end at the cut-off", "reversed", "en")
def no_cut_off(bench: Bench) -> None:
    def recall(guess: Mapping[str, Any], gold: Mapping[str, Any]) -> float:
        ranked = [*guess["candidates"], *guess.get("further", ())]
        return len({*ranked} & {*gold["targets"]}) / len(gold["targets"])

    bench.metric = scorer("recall", recall, "map_at_20")


@planted("lareqa", "average precision that counts one candidate many times", "repeated", "en")
def counted_again(bench: Bench) -> None:
    def precision(guess: Mapping[str, Any], gold: Mapping[str, Any]) -> float:
        hits = [candidate in gold["targets"] for candidate in guess["candidates"]]
        found = [sum(hits[: place + 1]) / (place + 1) for place, hit in enumerate(hits) if hit]
        return sum(found) / len(gold["targets"])

    bench.metric = scorer("repeating", precision, "map_at_20")
