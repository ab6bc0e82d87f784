"""The cluster bootstrap against scipy's, against closed forms, and at its edges."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from harness.metrics.chunk import f1_from_counts
from harness.statistics import (
    Interval,
    bootstrap_counts,
    cluster_sums,
    clustered_mean,
    count_interval,
    percentile_interval,
    resampled_sums,
    seed_of,
)

Floats = npt.NDArray[np.float64]


def _counts(n: int, seed: int = 0) -> Floats:
    random = np.random.default_rng(seed)
    gold = random.poisson(2, n)
    predicted = np.maximum(0, gold + random.integers(-1, 2, n))
    right = random.binomial(np.minimum(gold, predicted), 0.8)
    return np.stack([right, predicted, gold], axis=1).astype(np.float64)


def _alone(n: int) -> npt.NDArray[np.int64]:
    return np.arange(n, dtype=np.int64)


def test_it_agrees_with_that_of_scipy() -> None:
    counts = _counts(400)

    def f1(right: Floats, predicted: Floats, gold: Floats, axis: int = -1) -> Floats:
        value: Floats = 2 * right.sum(axis=axis) / (predicted.sum(axis=axis) + gold.sum(axis=axis))
        return value

    expected = stats.bootstrap(
        tuple(counts.T), f1, paired=True, n_resamples=4_000, method="percentile", rng=np.random.default_rng(1)
    )
    found = count_interval(counts, _alone(400), f1_from_counts, draws=4_000)
    assert found.se == pytest.approx(expected.standard_error, rel=0.06)
    low, high = expected.confidence_interval
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.1 * (high - low))


@pytest.mark.parametrize("binary", [True, False])
def test_the_bootstrap_of_a_mean_is_the_closed_form(binary: bool) -> None:
    random = np.random.default_rng(4)
    clusters = random.integers(0, 80, 600)
    codes = np.unique(clusters, return_inverse=True)[1].astype(np.int64)
    items = random.random(600) / 2 + 0.02 * (clusters % 20)
    items = (items > 0.4).astype(np.float64) if binary else items
    counts = np.stack([items, np.ones(600)], axis=1)
    found = count_interval(counts, codes, lambda sums: float(sums[0] / sums[1]), draws=4_000)
    expected = clustered_mean(items, [str(code) for code in codes])
    assert expected.se is not None
    assert (found.method, found.groups) == ("cluster bootstrap", 80)
    assert found.se == pytest.approx(expected.se, rel=0.05)


def test_distinct_rows_are_drawn_as_often_as_single_ones() -> None:
    # 2,000 rows of three sorts go the way of the multinomial; a column that differs in each forces the other way.
    sums = np.repeat(np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 1.0]]), [1_000, 600, 400], axis=0)
    apart = np.column_stack([sums, np.arange(2_000.0)])
    one = resampled_sums(sums, draws=3_000, seed=5)
    other = resampled_sums(apart, draws=3_000, seed=6)[:, :2]
    assert one.mean(axis=0) == pytest.approx(sums.sum(axis=0), rel=0.002)
    assert np.cov(one.T) == pytest.approx(np.cov(other.T), abs=200)
    assert np.cov(one.T) == pytest.approx(2_000 * np.cov(sums.T), abs=200)


def test_all_parts_see_the_same_resamples() -> None:
    counts = _counts(50)
    whole = bootstrap_counts(counts, _alone(50), f1_from_counts, draws=20, seed=3)
    twice = bootstrap_counts(
        np.stack([counts, counts, 0 * counts]), _alone(50), f1_from_counts, draws=20, seed=3
    )
    assert twice.shape == (20, 3)
    assert (twice[:, 0] == twice[:, 1]).all()
    assert (twice[:, 2] == 0).all()
    assert whole.shape == (20,)


@given(st.integers(2, 30), st.integers(1, 6), st.integers(0, 9))
def test_neither_the_order_of_items_nor_the_names_of_clusters_matter(n: int, groups: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    counts = _counts(n, seed)
    codes = np.unique(random.integers(0, groups, n), return_inverse=True)[1].astype(np.int64)
    order = random.permutation(n)
    renamed = int(codes.max()) - codes
    found = count_interval(counts, codes, f1_from_counts, draws=50, seed=seed)
    assert count_interval(counts[order], renamed[order], f1_from_counts, draws=50, seed=seed) == found
    assert not (found.low is not None and np.isnan(found.low))


def test_sums_by_cluster() -> None:
    counts = np.arange(12.0).reshape(2, 3, 2)
    sums = cluster_sums(counts, np.array([1, 0, 1]))
    assert sums.shape == (2, 2, 2)
    assert sums[0].tolist() == [[2, 3], [8, 9]]
    assert sums[1].tolist() == [[4, 6], [16, 18]]
    assert cluster_sums(counts[0], np.array([0, 1, 2])) is not None


@pytest.mark.parametrize(
    ("counts", "codes", "method"),
    [
        (np.zeros((0, 3)), [], None),
        (np.ones((1, 3)), [0], "one cluster"),
        (np.ones((4, 3)), [0, 0, 0, 0], "one cluster"),
        (np.ones((4, 3)), [0, 1, 2, 3], "constant"),
        (np.zeros((4, 3)), [0, 1, 2, 3], "constant"),
    ],
)
def test_what_has_no_interval_says_why(counts: Floats, codes: list[int], method: str | None) -> None:
    found = count_interval(counts, np.array(codes, dtype=np.int64), f1_from_counts)
    assert found == Interval(method=method)


def test_a_statistic_that_some_resample_does_not_have_gets_no_interval() -> None:
    counts = np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    found = count_interval(counts, _alone(3), lambda sums: float(sums.tolist()[0] / sums.tolist()[1]))
    assert (found.low, found.method) == (None, "a resample has no score")


def test_a_percentile_interval_is_that_of_the_replicates() -> None:
    replicates = np.arange(1_001) / 1_000
    found = percentile_interval(replicates, seed=7)
    assert (found.low, found.high) == pytest.approx((0.025, 0.975))
    assert found.se == pytest.approx(replicates.std(ddof=1))
    assert (found.draws, found.seed) == (1_001, 7)


def test_seeds_are_those_of_the_names() -> None:
    assert seed_of("xnli", "de") == seed_of("xnli", "de") != seed_of("xnli", "sw")
    assert seed_of("a", "bc") != seed_of("ab", "c")
    assert 0 <= seed_of() < 2**32
