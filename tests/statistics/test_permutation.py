"""Permutation tests against scipy's, and against p-values that were counted by hand."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from harness.metrics.chunk import f1_from_counts
from harness.statistics import half_sums, mcnemar, sign_flip_p, significance, swap_p

Floats = npt.NDArray[np.float64]


def _alone(n: int) -> npt.NDArray[np.int64]:
    return np.arange(n, dtype=np.int64)


def _scipys(sums: Floats, draws: int) -> float:
    test = stats.permutation_test(
        (sums,),
        lambda values, axis: values.sum(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=draws,
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)


@settings(max_examples=30)
@given(st.lists(st.integers(-8, 8), min_size=1, max_size=10))
def test_few_clusters_are_enumerated(values: list[int]) -> None:
    differences = np.array(values) / 8
    signs = itertools.product((-1, 1), repeat=len(values))
    flipped = [abs(sum(sign * value for sign, value in zip(own, values, strict=True))) for own in signs]
    expected = sum(one >= abs(sum(values)) for one in flipped) / len(flipped)
    assert sign_flip_p(differences, _alone(len(values))) == pytest.approx(expected)
    # Three items of a third each are a cluster of the same sum.
    tripled = np.repeat(differences / 3, 3)
    assert sign_flip_p(tripled, np.repeat(_alone(len(values)), 3)) == pytest.approx(expected)


@pytest.mark.parametrize("expanded", [1, 7, 50])
def test_halves_do_not_depend_on_how_many_signs_are_expanded_at_a_time(
    monkeypatch: pytest.MonkeyPatch, expanded: int
) -> None:
    rows = np.random.default_rng(0).normal(size=(30, 2))
    whole, _ = half_sums(rows, draws=120, seed=1)
    monkeypatch.setattr(significance, "EXPANDED", expanded)
    monkeypatch.setattr(significance, "BLOCK", 30 * 60)
    found, is_all = half_sums(rows, draws=120, seed=1)
    assert found.shape == (120, 2)
    assert not is_all
    assert found == pytest.approx(whole)


def test_few_clusters_are_those_of_scipy() -> None:
    sums = np.random.default_rng(1).normal(0.3, 1, 9)
    assert sign_flip_p(sums, _alone(9)) == pytest.approx(_scipys(sums, 100_000))


@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_many_clusters_are_close_to_those_of_scipy(shift: float) -> None:
    sums = np.random.default_rng(2).normal(shift, 1, 120)
    found, expected = sign_flip_p(sums, _alone(120), seed=3), _scipys(sums, 9_999)
    assert found == pytest.approx(expected, abs=5 * np.sqrt(expected * (1 - expected) / 9_999) + 1e-4)


@pytest.mark.parametrize(("won", "lost"), [(30, 12), (300, 250), (20, 20)])
def test_right_and_wrong_items_give_mcnemars_p(won: int, lost: int) -> None:
    differences = np.concatenate([np.ones(won), -np.ones(lost), np.zeros(500)])
    expected = mcnemar(lost, won)
    found = sign_flip_p(differences, _alone(len(differences)))
    assert found == pytest.approx(expected, abs=5 * np.sqrt(expected * (1 - expected) / 9_999) + 1e-4)


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_is_the_exact_binomial_test(first: int, second: int) -> None:
    expected = stats.binomtest(first, first + second).pvalue if first + second else 1.0
    assert mcnemar(first, second) == pytest.approx(expected)


def test_systems_without_a_difference_have_p_1() -> None:
    assert sign_flip_p(np.zeros(0), _alone(0)) == 1.0
    assert sign_flip_p(np.zeros(5), _alone(5)) == 1.0
    assert sign_flip_p(np.array([0.5]), _alone(1)) == 1.0  # one cluster is never significant
    counts = np.ones((20, 1, 3))
    assert swap_p([counts], [counts], f1_from_counts) == (1.0, [1.0])


def test_a_p_by_simulation_is_never_zero() -> None:
    assert sign_flip_p(np.ones(100), _alone(100)) == 1 / 10_000


def test_swaps_of_means_are_sign_flips() -> None:
    random = np.random.default_rng(5)
    first, second = random.random((2, 10))
    counts = [np.stack([own, np.ones(10)], axis=1)[:, None] for own in (first, second)]
    mean, [own] = swap_p([counts[0]], [counts[1]], lambda sums: float(sums[0] / sums[1]))
    assert mean == own == pytest.approx(sign_flip_p(second - first, _alone(10)))


def test_swaps_of_set_level_scores_by_hand() -> None:
    # Three sentences of one gold chunk each: the first system finds none, the second all.
    none, whole = np.tile([0.0, 1.0, 1.0], (3, 1, 1)), np.tile([1.0, 1.0, 1.0], (3, 1, 1))
    assert swap_p([none], [whole], f1_from_counts) == (2 / 8, [2 / 8])
    # Two languages apart from each other: 64 swaps, of which 2 are as extreme; drawn, not counted.
    mean, own = swap_p([none, none], [whole, whole], f1_from_counts)
    assert mean == pytest.approx(2 / 64, abs=0.01)
    assert own == pytest.approx([2 / 8, 2 / 8], abs=0.03)
    # Both languages of a parallel sentence are swapped together.
    both = [np.concatenate([one, one], axis=1) for one in (none, whole)]
    assert swap_p([both[0]], [both[1]], f1_from_counts) == (2 / 8, [2 / 8, 2 / 8])
