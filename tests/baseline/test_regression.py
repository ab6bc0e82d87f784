from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from harness.errors import TrainingError
from harness.models.capabilities import TrainingSettings
from harness_baseline.regression import (
    BUCKETS,
    Schedule,
    SparseRows,
    fit_conditional,
    fit_multinomial,
    group_starts,
    score,
)

FEATURES = 6


def sparse(table: np.ndarray) -> SparseRows:
    ids = np.arange(table.shape[1], dtype=np.int64)
    return SparseRows.of_lists([(ids, row.astype(np.float32)) for row in table])


@pytest.fixture
def table() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(300, FEATURES))


def test_scores_are_the_matrix_product(table: np.ndarray) -> None:
    weights = np.zeros((BUCKETS, 3), dtype=np.float32)
    weights[:FEATURES] = np.random.default_rng(4).normal(size=(FEATURES, 3))
    np.testing.assert_allclose(score(sparse(table), weights), table @ weights[:FEATURES], atol=1e-5)


def test_taken_rows_are_those_rows(table: np.ndarray) -> None:
    weights = np.ones((BUCKETS, 1), dtype=np.float32)
    chosen = np.array([5, 2, 5])
    taken = score(sparse(table).take(chosen), weights)
    np.testing.assert_array_equal(taken, score(sparse(table), weights)[chosen])


def test_multinomial_finds_the_optimum_of_scikit_learn(table: np.ndarray) -> None:
    generator = np.random.default_rng(5)
    truth = generator.normal(size=(FEATURES, 3))
    classes = (table @ truth + generator.gumbel(size=(300, 3))).argmax(axis=1)
    weights = np.zeros((BUCKETS, 3), dtype=np.float32)
    schedule = Schedule(passes=600, seed=1, batch=300, rate=0.3)
    fit_multinomial(sparse(table), classes, weights, schedule)
    peer = LogisticRegression(C=1e6, fit_intercept=False, max_iter=2000).fit(table, classes)
    ours = weights[:FEATURES].T - weights[:FEATURES].T.mean(axis=0)
    theirs = peer.coef_ - peer.coef_.mean(axis=0)
    np.testing.assert_allclose(ours, theirs, atol=0.02)


def test_conditional_with_two_choices_is_a_logit_of_their_difference(table: np.ndarray) -> None:
    generator = np.random.default_rng(6)
    truth = generator.normal(size=FEATURES)
    one, other = table[:150], table[150:]
    right = (generator.logistic(size=150) > (one - other) @ truth).astype(np.int64)
    pairs = np.stack([one, other], axis=1).reshape(300, FEATURES)
    weights = np.zeros((BUCKETS, 1), dtype=np.float32)
    schedule = Schedule(passes=600, seed=1, batch=150, rate=0.3)
    fit_conditional(sparse(pairs), group_starts([2] * 150), right, weights, schedule)
    peer = LogisticRegression(C=1e6, fit_intercept=False, max_iter=2000).fit(other - one, right)
    np.testing.assert_allclose(weights[:FEATURES, 0], peer.coef_[0], atol=0.02)


def test_groups_may_differ_in_size() -> None:
    table = np.eye(FEATURES)
    weights = np.zeros((BUCKETS, 1), dtype=np.float32)
    schedule = Schedule(passes=50, seed=1, batch=2, rate=0.3)
    fit_conditional(sparse(table), group_starts([1, 2, 3]), np.array([0, 1, 2]), weights, schedule)
    scores = score(sparse(table), weights)[:, 0]
    assert scores[0] == 0
    assert scores[2] > scores[1]
    assert scores[5] > max(scores[3], scores[4])


def test_weights_that_overflow_are_an_error(table: np.ndarray) -> None:
    weights = np.zeros((BUCKETS, 2), dtype=np.float32)
    rows = sparse(np.where(table > 0, np.nan, table))
    with pytest.raises(TrainingError, match="diverged"), np.errstate(all="ignore"):
        fit_multinomial(
            rows, np.zeros(300, np.int64), weights, Schedule(passes=1, seed=1, batch=50, rate=0.1)
        )


@pytest.mark.parametrize(
    ("epochs", "max_steps", "count", "steps"),
    [
        (3, None, 10_000, 300),
        (2.5, None, 10_000, 300),
        (50, None, 10_000, 500),
        (1, None, 10, 150),
        (3, 7, 10_000, 7),
    ],
)
def test_steps_follow_the_settings(epochs: float, max_steps: int | None, count: int, steps: int) -> None:
    settings = TrainingSettings(learning_rate=1, epochs=epochs, batch_size=8, max_steps=max_steps)
    assert Schedule.of_settings(settings, 1, batch=100, rate=0.1).steps(count) == steps
