"""The test of equal recall over positions, against scipy and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from harness.statistics import recall_balance_p


def test_without_clusters_it_is_pearsons_test() -> None:
    """Its variance is that of the items rather than the pooled one, which makes little difference."""
    random = np.random.default_rng(1)
    gold = random.integers(0, 4, 4_000)
    right = (random.random(4_000) < 0.4 + 0.02 * gold).astype(np.float64)
    table = [[right[gold == place].sum(), (1 - right[gold == place]).sum()] for place in range(4)]
    expected = chi2_contingency(table, correction=False).pvalue
    assert recall_balance_p(right, gold, np.arange(4_000)) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(("size", "places"), [(1, 4), (1, 2), (5, 4)])
def test_answers_without_a_preference_are_found_in_one_of_twenty_cells(size: int, places: int) -> None:
    """Also where gold answers are spread unevenly, and where a cluster has one gold answer and is right together."""
    random = np.random.default_rng(2)
    groups = 60 * places
    found = []
    for _ in range(1_000):
        ease = np.repeat(random.beta(2, 2, groups), size)
        gold = np.repeat(np.minimum(random.integers(0, places + 1, groups), places - 1), size)
        right = (random.random(groups * size) < ease).astype(np.float64)
        p = recall_balance_p(right, gold, np.repeat(np.arange(groups), size))
        assert p is not None
        found.append(p < 0.05)
    assert 0.03 < np.mean(found) < 0.07


def test_a_preference_is_found() -> None:
    random = np.random.default_rng(3)
    gold = random.integers(0, 4, 800)
    prefers_first = np.where(random.random(800) < 0.3, 0, random.integers(0, 4, 800))
    p = recall_balance_p((prefers_first == gold).astype(np.float64), gold, np.arange(800))
    assert p is not None
    assert p < 0.001


@pytest.mark.parametrize(
    ("right", "gold"),
    [([1.0] * 40, [0, 1] * 20), ([1.0, 0.0] * 20, [0] * 40), ([1.0, 0.0] * 8, [0, 1] * 8)],
)
def test_no_p_from_too_little(right: list[float], gold: list[int]) -> None:
    """All right, one position, or fewer than ten gold answers per position."""
    assert recall_balance_p(np.array(right), np.array(gold), np.arange(len(gold))) is None
