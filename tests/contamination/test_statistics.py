"""The tests of item order and of fresh texts against scipy, brute force and simulation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from harness_contamination.comparison import (
    difference_p,
    order_rate,
    order_test,
    rank_rate,
    rank_test,
    similarity,
)
from harness_contamination.signs import random_orders


def test_orders_are_those_of_the_file_and_permutations_that_a_shard_always_gets() -> None:
    orders = random_orders(8, 20, 3)
    assert orders[0] == list(range(8))
    assert all(sorted(one) == orders[0] for one in orders)
    assert len({tuple(one) for one in orders}) > 15
    assert random_orders(8, 20, 3) == orders != random_orders(8, 20, 4)


def test_item_order_is_the_paper_s_t_test() -> None:
    values = np.random.default_rng(0).normal(size=(12, 21))
    values[:, 0] += 0.5
    advantage = values[:, 0] - values[:, 1:].mean(axis=1)
    expected = stats.ttest_1samp(advantage, 0.0, alternative="greater")
    assert order_test(values) == pytest.approx((advantage.mean(), expected.pvalue))
    assert order_test(np.ones((6, 3))) == (0.0, 0.5)


def test_item_order_is_uniform_under_random_orders_and_its_rate_is_measured() -> None:
    random = np.random.default_rng(1)
    # Skewed, with a level of its own for every shard.
    sets = random.gamma(2.0, size=(400, 8, 11)) + 10 * random.normal(size=(400, 8, 1))
    p = [order_test(values)[1] for values in sets]
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.035)
    rates = [order_rate(values) for values in sets[:60]]
    assert np.mean(rates) == pytest.approx(np.mean(np.array(p) <= 0.05), abs=0.035)


def test_the_rate_ignores_the_order_of_the_file() -> None:
    values = np.random.default_rng(2).normal(size=(10, 21))
    found = values.copy()
    found[:, 0] += 50
    assert order_test(found)[1] < 1e-6
    assert order_rate(found) == order_rate(values)


def test_ranks() -> None:
    items, fresh = [3.0, 1.0, 2.0, 5.0], [1.0, 0.0, 4.0]
    pairs = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in product(items, fresh)]
    auc, p = rank_test(items, fresh)
    assert auc == pytest.approx(np.mean(pairs))
    assert p == pytest.approx(stats.mannwhitneyu(items, fresh, alternative="greater").pvalue)
    assert rank_rate(np.random.default_rng(3).normal(size=60).tolist()) == pytest.approx(0.05, abs=0.03)
    assert rank_rate([0.0] * 20) == 0.0


def test_similarity_is_jaccard_of_trigrams() -> None:
    texts = ["maji ya moto", "maji", "猫坐在垫子上", "a", "maji ya moto"]
    grams = [{text[at : at + 3] for at in range(max(1, len(text) - 2))} for text in texts]
    expected = [[len(one & other) / len(one | other) for other in grams] for one in grams]
    assert similarity(texts) == pytest.approx(np.array(expected))


def test_texts_of_another_sort_differ_without_a_model_and_those_of_one_source_do_not() -> None:
    random = np.random.default_rng(4)
    words = ["river", "lamp", "door", "bread", "stone", "chair", "paper", "rope"]
    one = [" ".join(random.choice(words, 6)) for _ in range(240)]
    p = np.array(
        [difference_p(one[start : start + 12], one[start + 12 : start + 24]) for start in range(0, 240, 24)]
    )
    assert np.median(p) > 0.1
    assert difference_p(one[:20], [f"{text} in 2026" for text in one[20:40]]) < 0.01
