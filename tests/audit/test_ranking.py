from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.data.records import RankedQuery
from harness.metrics.catalog import METRICS
from harness.metrics.metric import MetricContext
from harness_audit.ranking import ranking_trials
from harness_audit.trial import Scored

NAMES = ("map_at_20", "mrr_at_20", "one_target_map_at_20")


@st.composite
def pools(draw: st.DrawFn) -> tuple[list[list[str]], list[str]]:
    """Return the right candidates of some queries, and the pool: of any size, also smaller than the cut-off."""
    candidates = [f"c{number}" for number in range(draw(st.integers(2, 60)))]
    gold = st.lists(st.sampled_from(candidates), min_size=1, max_size=8, unique=True)
    return draw(st.lists(gold, min_size=1, max_size=12)), candidates


def scores(
    metric: str, gold: Sequence[Sequence[str]], candidates: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """Return what every trial scores, and the most that it may."""
    [own] = [item for item in METRICS if item.name == metric]
    references = [{"targets": list(ids), "languages": ["en"] * len(ids)} for ids in gold]
    examples = [RankedQuery(id=str(row), query="q", targets=tuple(ids)) for row, ids in enumerate(gold)]
    found = {}
    for trial in ranking_trials(references, candidates):
        value = Scored.of(own, trial, examples, references, MetricContext(language="en")).goodness
        assert value is not None
        found[trial.name] = (value, trial.ceiling)
    return found


@pytest.mark.parametrize("metric", NAMES)
@given(pool=pools())
def test_the_published_metrics_pass_on_any_pool(metric: str, pool: tuple[list[list[str]], list[str]]) -> None:
    found = scores(metric, *pool)
    assert found.pop("gold")[0] == pytest.approx(1)
    for name, (value, ceiling) in found.items():
        if name != "random candidates":
            assert value <= ceiling + 1e-9, name


def test_chance_is_that_of_the_pool() -> None:
    """Of 5,000 candidates 20 are drawn: a right one is among them for 0.4 % of the queries."""
    candidates = [f"c{number}" for number in range(5000)]
    found = scores("mrr_at_20", [[name] for name in candidates[::25]], candidates)
    value, ceiling = found["random candidates"]
    assert value <= ceiling == pytest.approx(0.004 + 4 * (0.004 * 0.996 / 200) ** 0.5)
    assert found["empty rankings"] == (0.0, 0.0)
    assert found["the right candidates behind the cut-off"] == (0.0, 0.0)
    assert found["the constant 'c0'"] == pytest.approx((1 / 200, 1 / 200))
