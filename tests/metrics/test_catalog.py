"""The catalog of metrics, and how metrics are named."""

from __future__ import annotations

from typing import Any

import pytest

from harness.metrics.catalog import METRICS
from harness.metrics.metric import Metric, MetricContext, metric_name
from harness.registry.discovery import discover
from harness.registry.registry import Registry

RANKED = {
    "label": "a",
    "scores": [-1.0, -2.0],
    "tokens": [1, 1],
    "characters": [2, 2],
    "bytes": [2, 2],
    "unconditional": [-2.0, -2.0],
}
PERFECT: dict[str, tuple[list[Any], list[Any]]] = {
    "sequence_classification": ([RANKED], ["a"]),
    "multiple_choice": ([RANKED], ["a"]),
    "form_preference": ([RANKED | {"forms": ["a", "b"]}], ["a"]),
    "span_extraction": (
        [{"text": "the cat sat down", "start": 0, "end": 16, "score": 0.0}],
        [["the cat sat down"]],
    ),
    "numeric_answer": ([{"text": "1,200", "value": "1200"}], ["1200"]),
    "summary": ([{"text": "the cat sat down", "copied": False}], [["the cat sat down"]]),
    "translation": ([{"text": "the cat sat down", "copied": False}], [["the cat sat down"]]),
    "token_tagging": ([["NOUN"]], [["NOUN"]]),
    "word_labelling": ([["a", "b"]], [["a", "b"]]),
    "text_marking": ([{"spans": [[0, 4, "NOUN"]]}], [[[0, 4, "NOUN"]]]),
    "bitext_retrieval": ([{"candidate": "a", "similarity": 1.0}], ["a"]),
    "ranked_retrieval": ([{"candidates": ["a"]}], [["a"]]),
}


def test_names_are_unique() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names) == 35


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_declaration_and_perfect_answers(metric: Metric) -> None:
    assert metric.description.endswith(".")
    assert metric.source
    if metric.missing is not None and metric.missing() is not None:
        pytest.skip(str(metric.missing()))
    for kind in metric.kinds:
        predictions, references = PERFECT[kind]
        labels = ("NOUN",) if kind == "token_tagging" else ("a", "b")
        result = metric.compute(predictions, references, MetricContext(language="en", labels=labels))
        assert result.value == float(metric.higher_is_better)
        assert (result.items is None) == (result.counts is not None) == (metric.from_counts is not None)


@pytest.mark.parametrize(
    ("metric", "printed"),
    [
        ("chunk_f1", "F1"),
        ("exact_match", "EM"),
        ("mean(f1, exact_match)", "mean(F1, EM)"),
        ("mean(label_macro_f1)", "mean(label macro f1)"),
    ],
)
def test_a_mean_of_metrics_has_their_printed_names(metric: str, printed: str) -> None:
    assert metric_name(metric) == printed
    assert [name for name in Registry(discover()).metrics.names if "_" in metric_name(name)] == []
