"""Coverage of 95 % intervals and type-I errors of tests, by simulation with clusters of which the truth is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from harness.metrics.chunk import f1_from_counts
from harness.statistics import (
    Interval,
    count_interval,
    mcnemar,
    mean_of_codes,
    paired_difference,
    resampled_sums,
    sign_flip_p,
    stratified_mean,
    swap_p,
)

Floats = npt.NDArray[np.float64]
GROUPS, SIZE = 50, 10
CODES = np.repeat(np.arange(GROUPS), SIZE).astype(np.int64)
ALONE = np.arange(GROUPS * SIZE, dtype=np.int64)
ONE = np.zeros(GROUPS * SIZE, dtype=np.int64)
# The full size, and a small one in every run whose bounds are some four standard errors wide.
SIZES = [pytest.param(300, 0.055, id="small"), pytest.param(2_000, 0.015, marks=pytest.mark.slow, id="full")]


def _share(random: np.random.Generator, a: float = 4.0, b: float = 2.0) -> Floats:
    """Return the probability of each item to be right: one draw of Beta(a, b) a cluster."""
    return np.repeat(random.beta(a, b, GROUPS), SIZE)


def _mean(random: np.random.Generator) -> tuple[Interval, float]:
    items = (random.random(GROUPS * SIZE) < _share(random)).astype(np.float64)
    return mean_of_codes(items, CODES), 4 / 6


def _languages(random: np.random.Generator) -> tuple[Interval, float]:
    """Four languages of the same 50 items, harder or easier in all of them."""
    hardness = random.beta(4, 2, GROUPS)
    items = [(random.random(GROUPS) < hardness * ease).astype(np.float64) for ease in (1.0, 0.9, 0.7, 0.4)]
    strata = np.repeat(np.arange(4), GROUPS)
    codes = np.tile(np.arange(GROUPS, dtype=np.int64), 4)
    return stratified_mean(np.concatenate(items), strata, codes), 4 / 6 * 0.75


def _difference(random: np.random.Generator) -> tuple[Interval, float]:
    first, second = _pair(random, 0.1)
    return paired_difference(second - first, ONE, CODES), 0.1


def _f1(random: np.random.Generator) -> tuple[Interval, float]:
    """Every sentence has two gold and two predicted chunks, each right with the probability of its document."""
    right = random.binomial(2, _share(random))
    counts = np.stack([right, np.full_like(right, 2), np.full_like(right, 2)], axis=1).astype(np.float64)
    return count_interval(counts, CODES, f1_from_counts, draws=400, seed=int(random.integers(2**31))), 4 / 6


def _pair(random: np.random.Generator, shift: float = 0.0) -> tuple[Floats, Floats]:
    """Two systems that err on clusters of their own: the mean of the second is higher by `shift`."""
    found = []
    for mean in (0.6, 0.6 + shift):
        share = np.repeat(random.beta(2 * mean, 2 * (1 - mean), GROUPS), SIZE)
        found.append((random.random(GROUPS * SIZE) < share).astype(np.float64))
    return found[0], found[1]


@pytest.mark.parametrize(("draws", "margin"), SIZES)
@pytest.mark.parametrize("make", [_mean, _languages, _difference, _f1])
def test_intervals_cover_the_truth(
    make: Callable[[np.random.Generator], tuple[Interval, float]], draws: int, margin: float
) -> None:
    random = np.random.default_rng(20)
    held = 0
    for _ in range(draws):
        interval, truth = make(random)
        assert interval.low is not None
        assert interval.high is not None
        held += interval.low <= truth <= interval.high
    print(f"{make.__name__}: {held / draws:.4f} of {draws}")  # noqa: T201
    assert held / draws == pytest.approx(0.95, abs=margin)


@pytest.mark.parametrize(("draws", "margin"), SIZES)
def test_items_as_if_they_were_independent_cover_too_little(draws: int, margin: float) -> None:
    random = np.random.default_rng(21)
    held = 0
    for _ in range(draws):
        items = (random.random(GROUPS * SIZE) < _share(random)).astype(np.float64)
        interval = mean_of_codes(items, ALONE)
        assert interval.low is not None
        assert interval.high is not None
        held += interval.low <= 4 / 6 <= interval.high
    print(f"naive: {held / draws:.4f} of {draws}")  # noqa: T201
    assert held / draws < 0.85


def _flips(first: Floats, second: Floats, seed: int) -> float:
    return sign_flip_p(second - first, CODES, draws=499, seed=seed)


def _closed_form(first: Floats, second: Floats, seed: int) -> float:
    interval = paired_difference(second - first, ONE, CODES)
    assert interval.low is not None
    assert interval.high is not None
    return float(interval.low <= 0 <= interval.high)


def _swaps(first: Floats, second: Floats, seed: int) -> float:
    counts = [
        np.add.reduceat(np.stack([own, *2 * [np.ones(len(own))]], axis=1), ALONE[::SIZE])
        for own in (first, second)
    ]
    return swap_p([counts[0][:, None]], [counts[1][:, None]], f1_from_counts, draws=499, seed=seed)[0]


def _bootstrap(first: Floats, second: Floats, seed: int) -> float:
    sums = np.add.reduceat(np.stack([second - first, np.ones(len(first))], axis=1), ALONE[::SIZE])
    drawn = resampled_sums(sums, draws=400, seed=seed)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [0.025, 0.975])
    return float(low <= 0 <= high)


def _naive(first: Floats, second: Floats, seed: int) -> float:
    return sign_flip_p(second - first, ALONE, draws=499, seed=seed)


def _mcnemar(first: Floats, second: Floats, seed: int) -> float:
    return mcnemar(int((first > second).sum()), int((second > first).sum()))


@pytest.mark.parametrize(("draws", "margin"), SIZES)
@pytest.mark.parametrize(
    ("test", "respects"),
    [
        (_flips, True),
        (_closed_form, True),
        (_swaps, True),
        (_bootstrap, True),
        (_naive, False),
        (_mcnemar, False),
    ],
)
def test_equal_systems_differ_in_five_of_a_hundred(
    test: Callable[[Floats, Floats, int], float], respects: bool, draws: int, margin: float
) -> None:
    random = np.random.default_rng(22)
    rejected = sum(test(*_pair(random), seed) < 0.05 for seed in range(draws))
    print(f"{test.__name__}: {rejected / draws:.4f} of {draws}")  # noqa: T201
    if respects:
        assert rejected / draws == pytest.approx(0.05, abs=margin)
    else:
        assert rejected / draws > 0.25
