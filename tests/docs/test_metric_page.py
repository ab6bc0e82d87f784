"""The example of docs/add-a-metric.md on answers that could not be read, which have no label."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score

from harness.metrics.metric import MetricContext

PAGE = Path(__file__).parents[2] / "docs" / "add-a-metric.md"


@pytest.mark.parametrize("unread", [[], [0], [1, 3], [0, 1, 2, 3]])
def test_unread_answers_count_as_wrong(unread: list[int]) -> None:
    [source] = re.findall(r"metric\.py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(source, str(PAGE), "exec"), names)  # the page's own code
    gold = ["a", "b", "c", "a"]
    given = [None if index in unread else label for index, label in enumerate(["a", "c", "c", "a"])]
    context = MetricContext(language="en", labels=("a", "b", "c"))
    result = names["macro_f1"]([{"label": label} for label in given], gold, context)
    expected = f1_score(
        gold, [label or "" for label in given], labels=["a", "b", "c"], average="macro", zero_division=0
    )
    assert np.isclose(result.value, expected)
