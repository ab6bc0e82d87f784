"""Every metric has one printed name, which is never the machine's."""

from __future__ import annotations

import pytest

from harness.metrics.metric import metric_name
from harness.registry.discovery import discover
from harness.registry.registry import Registry


def test_no_printed_name_has_an_underscore() -> None:
    names = Registry(discover()).metrics.names
    assert names
    assert [name for name in names if "_" in metric_name(name)] == []


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
