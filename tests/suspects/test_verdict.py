"""The statistics: p values without faults, false discoveries, recall, clusters, and systems that are alike."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom, kstest

from harness_suspects.deviation import deviate, weight_masses
from harness_suspects.response import expect
from harness_suspects.verdict import Judgement, cluster_q, find_families, join_families, judge
from tests.suspects.conftest import CHANCE, draw_answers

RATE = 0.05
"""The share of false discoveries that the command promises."""


def judged(systems: int, faults: float, seed: int) -> tuple[Judgement, npt.NDArray[np.bool_]]:
    answers, faulty = draw_answers(systems, faults=faults, seed=seed)
    return judge(answers, CHANCE, range(answers.shape[2])), faulty


def test_weights_of_right_answers_have_the_binomial_distribution() -> None:
    masses = weight_masses(np.full((5, 1), 0.3), np.ones(5, dtype=np.int64))
    assert masses[:, 0] == pytest.approx(binom.pmf(range(6), 5, 0.3))
    heavy = weight_masses(np.array([[0.5], [0.25]]), np.array([2, 1]))
    assert heavy[:, 0] == pytest.approx([0.375, 0.125, 0.375, 0.125])


def test_p_values_without_faults_are_uniform() -> None:
    rng = np.random.default_rng(1)
    drawn = []
    for seed in range(3):
        answers, _ = draw_answers(10, seed=seed)
        deviation = deviate(answers, expect(answers), CHANCE)
        width = deviation.p - deviation.p_below
        drawn.append(deviation.p_below + rng.random(width.shape) * width)
    p = np.concatenate(drawn).ravel()
    assert kstest(p, "uniform").statistic < 0.04
    assert np.mean(p <= 0.05) == pytest.approx(0.05, abs=0.015)
    assert np.mean(p <= 0.001) < 0.004


def test_expectations_leave_out_the_language_itself() -> None:
    answers, _ = draw_answers(4, languages=5, items=60)
    wrong, right = answers.copy(), answers.copy()
    wrong[:, 2, 7], right[:, 2, 7] = 0, 1
    first, second = expect(wrong), expect(right)
    own = np.abs(second.logits[:, 2, 7] - first.logits[:, 2, 7]).max()
    others = np.abs(second.logits[:, 3, 7] - first.logits[:, 3, 7]).max()
    assert own < others / 3


@pytest.mark.thorough
def test_false_discoveries_are_few_and_recall_rises_with_systems() -> None:
    established = {size: 0 for size in (2, 5, 10, 25)}
    true = dict(established)
    queue: dict[int, list[float]] = {size: [] for size in established}
    for size in established:
        for seed in range(4):
            judgement, faulty = judged(size, 0.03, seed)
            listed = np.nan_to_num(judgement.q, nan=1.0) <= RATE
            established[size] += int(listed.sum())
            true[size] += int((listed & faulty).sum())
            count = int(faulty.sum())
            first = np.argsort(-judgement.deviation.posterior.ravel())[:count]
            queue[size].append(float(faulty.ravel()[first].mean()))
    recall = [float(np.mean(queue[size])) for size in established]
    assert recall == sorted(recall)
    assert recall[0] > 3 * 0.03
    assert recall[-1] > 0.6
    assert established[25] > 30
    assert true[25] >= 0.9 * established[25]


@pytest.mark.thorough
def test_nothing_is_established_without_faults() -> None:
    counts = [int((np.nan_to_num(judged(20, 0.0, seed)[0].q, nan=1.0) <= RATE).sum()) for seed in range(10)]
    assert sum(count > 0 for count in counts) <= 2


@pytest.mark.thorough
def test_few_systems_are_ranked_and_many_are_tested() -> None:
    few, _ = judged(2, 0.03, 5)
    many, _ = judged(30, 0.03, 5)
    assert not few.tested
    assert not few.established.any()
    assert many.tested
    assert many.established.any()
    assert np.array_equal(many.established, np.nan_to_num(many.q, nan=1.0) <= RATE)
    assert few.power[2] < many.power[30]
    assert few.calibration.correlation is not None
    assert few.calibration.correlation > 0.05 > abs(many.calibration.permuted_correlation or 1)


def test_chances_of_a_fault_are_calibrated_with_many_systems() -> None:
    judgement, faulty = judged(20, 0.03, 3)
    likely = judgement.deviation.posterior > 0.5
    assert likely.sum() > 10
    assert faulty[likely].mean() == pytest.approx(judgement.deviation.posterior[likely].mean(), abs=0.2)
    assert judgement.deviation.deviation_sd == pytest.approx(0.7, abs=0.25)


def test_systems_that_are_wrong_alike_count_once() -> None:
    alike, _ = draw_answers(6, seed=2, alike=True)
    apart, _ = draw_answers(6, seed=2)
    both = np.concatenate([alike, apart[1:]])
    families = find_families(both)
    assert (0, 1, 2, 3, 4, 5) in families
    assert len(families) == 6
    assert len(judge(both, CHANCE, range(both.shape[2])).families) == 6


def test_a_family_answers_as_most_of_it_do() -> None:
    answers = np.array([[[1.0, 0.0, np.nan]], [[1.0, 0.0, np.nan]], [[0.0, np.nan, np.nan]]])
    [joined] = join_families(answers, [(0, 1, 2)])
    assert joined[0][:2].tolist() == [1.0, 0.0]
    assert np.isnan(joined[0][2])


def test_a_cluster_is_one_test() -> None:
    p = np.array([[0.001, 0.002, 0.6, 0.9], [0.5, 0.7, np.nan, np.nan]])
    q = cluster_q(p, [0, 0, 1, 1])
    assert q[0, 0] == pytest.approx(3 * 0.002)
    assert q[0, 1] == q[0, 0]
    assert q[0, 3] == pytest.approx(0.9)
    assert np.isnan(q[1, 2:]).all()
    alone = cluster_q(p, [0, 1, 2, 3])
    assert alone[0, 0] == pytest.approx(6 * 0.001)


def test_one_system_and_missing_answers_are_ranked() -> None:
    answers, faulty = draw_answers(3, faults=0.05)
    answers[:, 1, 4] = np.nan
    answers[1, :, 9] = np.nan
    answers[2] = np.nan  # of a system none could be read
    judgement = judge(answers, CHANCE, range(answers.shape[2]))
    assert np.isnan(judgement.deviation.p[1, 4])
    assert judgement.deviation.posterior[1, 4] == 0
    alone = judge(answers[:1], CHANCE, range(answers.shape[2]))
    assert not alone.tested
    assert alone.calibration.correlation is None
    first = np.argsort(-alone.deviation.posterior.ravel())[:40]
    assert faulty.ravel()[first].mean() > 2 * faulty.mean()
