"""Standard errors and intervals against scipy and against the printed formulas."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from harness.statistics import SMALL_SAMPLE, Interval, clustered_mean, paired_difference, wilson
from harness.statistics.contrast import common_variance
from harness.statistics.interval import linked_codes

Floats = npt.NDArray[np.float64]


def _alone(items: Floats) -> list[None]:
    return [None] * len(items)


def _by_hand(items: Floats, clusters: list[str]) -> float:
    """Liang and Zeger's estimator for a mean, as Miller (2024) prints it with the factor G / (G - 1)."""
    n, names = len(items), sorted(set(clusters))
    mean = sum(items) / n
    total = 0.0
    for name in names:
        residual = sum(
            value - mean for value, cluster in zip(items, clusters, strict=True) if cluster == name
        )
        total += residual**2
    return math.sqrt(len(names) / (len(names) - 1) * total) / n


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("n", [2, 7, 40, 1000])
def test_items_without_clusters_get_the_t_interval(n: int, level: float) -> None:
    items = 0.4 + 0.2 * np.random.default_rng(n).random(n)
    found = clustered_mean(items, _alone(items), level=level)
    assert found.method == "t"
    assert found.se == pytest.approx(stats.sem(items), rel=1e-12)
    low, high = stats.t.interval(level, n - 1, loc=items.mean(), scale=stats.sem(items))
    assert (found.low, found.high) == pytest.approx((max(0, low), min(1, high)), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_clusters_of_unequal_size_match_the_formula(seed: int) -> None:
    generator = np.random.default_rng(seed)
    clusters = [str(code) for code in generator.integers(0, 12, size=60)]
    effect = {name: generator.normal(0, 0.1) for name in sorted(set(clusters))}
    items = np.clip(0.5 + np.array([effect[name] for name in clusters]) + generator.normal(0, 0.05, 60), 0, 1)
    found = clustered_mean(items, clusters)
    expected = _by_hand(items, clusters)
    reach = stats.t.ppf(0.975, len(set(clusters)) - 1) * expected
    assert found.method == "clustered t"
    assert found.se == pytest.approx(expected, rel=1e-9)
    assert (found.low, found.high) == pytest.approx((items.mean() - reach, items.mean() + reach), rel=1e-9)


def test_a_small_case_by_hand() -> None:
    # Clusters (1, 1), (0, 0), (1, 0): residuals 1, -1, 0; G/(G-1) = 3/2; SE = sqrt(3/2 * 2) / 6.
    items = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 0.0])
    found = clustered_mean(items, ["a", "a", "b", "b", "c", "c"])
    assert found.se == pytest.approx(math.sqrt(3) / 6)
    assert (found.low, found.high) == (0.0, 1.0)  # 0.5 +- 4.303 * 0.289, cut to [0, 1]


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize(
    ("successes", "n"), [(0, 1), (1, 1), (0, 20), (20, 20), (3, 24), (12, 24), (199, 1000)]
)
def test_wilson_is_that_of_scipy(successes: int, n: int, level: float) -> None:
    expected = stats.binomtest(successes, n).proportion_ci(level, method="wilson")
    assert wilson(successes, n, level=level) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_few_right_or_wrong_items_get_wilson_and_many_get_t() -> None:
    for n in (SMALL_SAMPLE - 1, SMALL_SAMPLE):
        items = np.array([1.0, 0.0, 0.0] * n)[:n]
        found = clustered_mean(items, _alone(items))
        assert found.se == pytest.approx(stats.sem(items))
        if n < SMALL_SAMPLE:
            expected = stats.binomtest(int(items.sum()), n).proportion_ci(0.95, method="wilson")
            assert found.method == "wilson"
            assert found.low == pytest.approx(expected.low)
        else:
            assert found.method == "t"


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("n", [2, 24, 5000])
def test_all_right_or_all_wrong_is_not_certain(value: float, n: int) -> None:
    found = clustered_mean(np.full(n, value), [None] * n)
    assert (found.se, found.method) == (0.0, "wilson")
    assert found.low is not None
    assert found.high is not None
    assert found.low - 1e-12 <= value <= found.high + 1e-12
    assert found.high - found.low > 1 / (2 * n)


@pytest.mark.parametrize(
    ("items", "clusters", "method"),
    [
        ([], [], None),
        ([0.5], [None], "one cluster"),
        ([0.0, 1.0, 1.0], ["a", "a", "a"], "one cluster"),
        ([0.3, 0.3, 0.3], [None, None, None], "constant"),
        ([0.3, 0.3, 0.3, 0.3], ["a", "a", "b", "b"], "constant"),
    ],
)
def test_what_has_no_interval_says_why(
    items: list[float], clusters: list[str | None], method: str | None
) -> None:
    assert clustered_mean(np.array(items), clusters) == Interval(method=method)


def test_items_without_a_cluster_are_not_one_cluster() -> None:
    items = np.array([0.1, 0.9, 0.4, 0.6])
    mixed = clustered_mean(items, [None, None, "a", "a"])
    named = clustered_mean(items, ["x", "y", "a", "a"])
    assert mixed == named
    # A cluster whose name looks like a position is still a cluster of its own.
    assert clustered_mean(items, [None, None, "0", "1"]) == clustered_mean(items, _alone(items))


_SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=30) | st.lists(
    st.sampled_from([0.0, 1.0]), min_size=1, max_size=30
)


@given(_SCORES, st.integers(1, 10), st.sampled_from([0.5, 0.9, 0.95]))
def test_an_interval_lies_around_the_mean_and_in_the_unit_interval(
    scores: list[float], width: int, level: float
) -> None:
    items = np.array(scores)
    clusters = [str(index // width) for index in range(len(items))]
    for groups in (clusters, _alone(items)):
        found = clustered_mean(items, groups, level=level)
        if found.low is not None and found.high is not None:
            assert found.se is not None
            assert found.se >= 0
            assert 0 <= found.low <= items.mean() + 1e-12
            assert items.mean() - 1e-12 <= found.high <= 1
        else:
            assert found.method in {"one cluster", "constant"}


@given(_SCORES)
def test_the_order_of_items_does_not_matter(scores: list[float]) -> None:
    items = np.array(scores)
    clusters = [str(index % 3) for index in range(len(items))]
    order = np.random.default_rng(len(items)).permutation(len(items))
    first = clustered_mean(items, clusters)
    second = clustered_mean(items[order], [clusters[index] for index in order])
    assert first.method == second.method
    for one, other in ((first.se, second.se), (first.low, second.low), (first.high, second.high)):
        assert (one is None) == (other is None)
        if one is not None:
            assert one == pytest.approx(other, abs=1e-9)


# Paired differences -----------------------------------------------------------------------------------


def _one(n: int) -> npt.NDArray[np.int64]:
    return np.zeros(n, dtype=np.int64)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_a_paired_difference_of_independent_items_is_the_paired_t_test(level: float) -> None:
    first, second = np.random.default_rng(3).random((2, 40))
    found = paired_difference(first - second, _one(40), np.arange(40), level=level)
    expected = stats.ttest_rel(first, second).confidence_interval(level)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.method == "paired t"


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5)), min_size=3, max_size=40))
def test_with_one_stratum_it_is_the_estimator_of_a_clustered_mean(pairs: list[tuple[float, int]]) -> None:
    items = np.array([value for value, _ in pairs])
    clusters = [str(cluster) for _, cluster in pairs]
    mean = clustered_mean(items, clusters)
    codes = np.unique(clusters, return_inverse=True)[1].astype(np.int64)
    found = paired_difference(items, _one(len(items)), codes)
    if mean.se is None or found.se is None:
        assert len(set(clusters)) < 2 or np.allclose(items, items[0])
    else:
        assert found.se == pytest.approx(mean.se, abs=1e-12)


def test_strata_weigh_the_same_and_linked_items_are_one_draw() -> None:
    random = np.random.default_rng(8)
    differences = random.normal(size=9) / 4
    strata = np.array([0, 0, 0, 1, 1, 1, 1, 1, 1])
    # Items 0 and 3 share an id, 3 and 4 a cluster: 0, 3 and 4 are one draw.
    ids = np.array([0, 1, 2, 0, 4, 5, 6, 7, 8])
    clusters = np.array([0, 1, 2, 3, 3, 5, 6, 7, 2])
    draws = [[0, 3, 4], [1], [2, 8], [5], [6], [7]]
    means = [differences[:3].mean(), differences[3:].mean()]
    weights = np.where(strata == 0, 1 / (2 * 3), 1 / (2 * 6))
    residuals = weights * (differences - np.where(strata == 0, *means))
    se = math.sqrt(6 / 5 * sum(float(residuals[draw].sum()) ** 2 for draw in draws))
    found = paired_difference(differences, strata, linked_codes(ids, clusters))
    reach = float(stats.t.ppf(0.975, 5)) * se
    assert found.se == pytest.approx(se)
    assert (found.low, found.high) == pytest.approx((np.mean(means) - reach, np.mean(means) + reach))
    assert found.method == "paired clustered t"


def test_differences_without_variance_have_no_interval() -> None:
    nothing = Interval(method="constant")
    assert paired_difference(np.zeros(5), _one(5), np.arange(5)) == nothing
    assert paired_difference(np.arange(3) / 3, _one(3), _one(3)).method == "one cluster"
    assert paired_difference(np.zeros(0), _one(0), _one(0)).method is None


def test_the_variance_that_seeds_share_is_that_of_their_mean() -> None:
    """Items of their own clusters: the part of an item's variance over seeds is that of the mean of the seeds."""
    contributions = np.random.default_rng(3).normal(size=(4, 30))
    expected = 30 / 29 * (contributions.var(axis=0, ddof=1) / 4).sum()
    assert common_variance(contributions, np.arange(30)) == pytest.approx(expected)
