from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from harness.data.records import RankedQuery
from harness.metrics.catalog import METRICS
from harness.metrics.metric import MetricContext
from harness_audit.answers import Scored, trials

NAMES = ("map_at_20", "mrr_at_20", "one_target_map_at_20")


def pools() -> st.SearchStrategy[list[list[str]]]:
    """Return the right candidates of some queries."""
    names = st.integers(0, 59).map("c{}".format)
    return st.lists(st.lists(names, min_size=1, max_size=8, unique=True), min_size=1, max_size=12)


def scores(metric: str, gold: Sequence[Sequence[str]]) -> dict[str, tuple[float, float]]:
    """Return what every trial scores, and the most that it may."""
    [own] = [item for item in METRICS if item.name == metric]
    references = [{"targets": list(ids), "languages": ["en"] * len(ids)} for ids in gold]
    examples = [RankedQuery(id=str(row), query="q", targets=tuple(ids)) for row, ids in enumerate(gold)]
    found = {}
    for trial in trials("ranked_retrieval", examples, references, ()):
        value = Scored.of(own, trial, examples, references, MetricContext(language="en")).goodness
        assert value is not None
        found[trial.name] = (value, trial.ceiling)
    return found


@pytest.mark.parametrize("metric", NAMES)
@given(pool=pools())
def test_the_published_metrics_pass_on_any_pool(metric: str, pool: list[list[str]]) -> None:
    found = scores(metric, pool)
    assert found.pop("gold")[0] == pytest.approx(1)
    for name, (value, ceiling) in found.items():
        assert value <= ceiling + 1e-9, name


def test_a_constant_is_right_for_its_own_query() -> None:
    found = scores("mrr_at_20", [[f"c{number}"] for number in range(200)])
    assert found["empty rankings"] == (0.0, 0.0)
    assert found["the constant 'c0'"] == pytest.approx((1 / 200, 1 / 200))
