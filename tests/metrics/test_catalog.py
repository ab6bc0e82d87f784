from __future__ import annotations

from typing import Any

import pytest

from harness.metrics.catalog import METRICS
from harness.metrics.metric import Metric, MetricContext

PERFECT: dict[str, tuple[list[Any], list[Any]]] = {
    "sequence_classification": ([{"label": "a", "scores": [1.0]}], ["a"]),
    "multiple_choice": ([{"label": 1}], [1]),
    "span_extraction": ([{"text": "cat", "start": 0, "end": 3, "score": 0.0}], [["cat"]]),
    "token_tagging": ([["NOUN"]], [["NOUN"]]),
    "text_marking": ([{"spans": [[0, 4, "NOUN"]]}], [[[0, 4, "NOUN"]]]),
    "bitext_retrieval": ([{"candidate": "a", "similarity": 1.0}], ["a"]),
    "ranked_retrieval": ([{"candidates": ["a"]}], [["a"]]),
}


def test_names_are_unique() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names) == 16


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_declaration_and_perfect_answers(metric: Metric) -> None:
    assert metric.description.endswith(".")
    assert metric.source
    for kind in metric.kinds:
        predictions, references = PERFECT[kind]
        result = metric.compute(predictions, references, MetricContext(language="en"))
        assert result.value == 1.0
        assert (result.items is None) == (result.counts is not None) == (metric.from_counts is not None)
