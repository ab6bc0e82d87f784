from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, strategies as st

from harness_probing.baselines import control_classes, fit_baselines, type_keys
from harness_probing.mdl import online_code, portion_ends, sending_order
from harness_probing.mix import ScalarMix
from harness_probing.problem import ProbeProblem
from harness_probing.settings import FRACTIONS, ProbeSettings
from harness_probing.training import LabelledFeatures, initial_weights
from tests.probing.made_up import SentenceTargets, gather

SHARES = (5, 0, 3, 2)


def test_control_classes_follow_the_distribution() -> None:
    drawn = control_classes(type_keys([f"word{number}" for number in range(20_000)]), SHARES, (0, 1))
    for own in drawn:
        counts = np.bincount(own, minlength=4)
        assert counts[1] == 0
        assert scipy.stats.chisquare(counts[[0, 2, 3]], np.array([0.5, 0.3, 0.2]) * 20_000).pvalue > 1e-3
    # Two seeds agree as often as two independent draws do: with 0.25 + 0.09 + 0.04.
    assert abs((drawn[0] == drawn[1]).mean() - 0.38) < 0.015


@given(st.lists(st.text(max_size=5), min_size=1, max_size=20), st.randoms())
def test_a_type_has_one_control_class_in_any_order(types: list[str], random: object) -> None:
    drawn = control_classes(type_keys(types), SHARES, (3,))[0]
    again = control_classes(type_keys(types[::-1]), SHARES, (3,))[0][::-1]
    assert drawn.tolist() == again.tolist()
    alone = [control_classes(type_keys([word]), SHARES, (2, 3))[1, 0] for word in types]
    assert drawn.tolist() == alone


def test_the_last_class_with_a_share_gets_the_rest() -> None:
    drawn = control_classes(type_keys([str(number) for number in range(500)]), (0.1, 0.2, 0.0), (0,))
    assert set(drawn[0].tolist()) == {0, 1}


def _data(
    features: np.ndarray, classes: np.ndarray, sentences: np.ndarray | None = None, *, count: int = 3
) -> LabelledFeatures:
    own = np.arange(len(classes)) if sentences is None else sentences
    return LabelledFeatures(
        class_count=count,
        features=torch.as_tensor(features[None], dtype=torch.float32),
        classes=torch.as_tensor(classes)[None, None],
        sentences=own.astype(np.int64),
    )


def test_the_code_length_of_a_tiny_case_by_hand() -> None:
    # Features of zeros and a rate of next to nothing: a probe says softmax(initial bias) of every label.
    classes = np.array([0, 1, 2, 2, 2, 0, 1, 2, 2, 2])
    data = _data(np.zeros((10, 3)), classes)
    settings = ProbeSettings(
        learning_rate=1e-12, weight_decay=0, fractions=(0.2, 0.5, 1.0), max_epochs=1, zero_start=False
    )
    code = online_code(data, data, settings, seed=4)
    bias = initial_weights(settings, 4, 3, 3)[1].double().numpy()
    coded = classes[sending_order(data.sentences, 4)][2:]
    bits = 2 * math.log2(3) - scipy.special.log_softmax(bias)[coded].sum() / math.log(2)
    assert code.bits.item() == pytest.approx(bits, abs=1e-5)
    assert code.uniform_bits == pytest.approx(10 * math.log2(3))
    assert code.compression().item() == pytest.approx(10 * math.log2(3) / bits, abs=1e-5)


def test_what_is_easy_takes_fewer_bits_than_what_is_not() -> None:
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 4, size=1_000)
    known = _data(np.eye(4)[classes] * 4 + rng.normal(size=(1_000, 4)) * 0.1, classes, count=4)
    unknown = _data(rng.normal(size=(1_000, 4)), classes, count=4)
    settings = ProbeSettings(learning_rate=0.02)
    easy, hard = (online_code(data, data, settings, seed=0) for data in (known, unknown))
    assert easy.compression().item() > 8
    assert 0.8 < hard.compression().item() < 1.02


def test_a_class_that_comes_late_costs_bits_but_not_infinitely_many() -> None:
    classes = np.array([0, 1] * 49 + [2, 2])
    data = _data(np.random.default_rng(0).normal(size=(100, 4)), classes, np.zeros(100))
    settings = ProbeSettings(learning_rate=0.02, fractions=(0.1, 0.5, 1.0))
    code = online_code(data, data, settings, seed=0)
    assert 0 < code.bits.item() < math.inf
    early = _data(data.features[0].numpy(), np.array([0, 1] * 50), np.zeros(100))
    assert code.bits.item() > online_code(early, early, settings, seed=0).bits.item()


def test_portions_are_those_of_the_paper() -> None:
    assert portion_ends(100_000, FRACTIONS) == [
        100, 200, 400, 800, 1600, 3200, 6250, 12_500, 25_000, 50_000, 100_000
    ]  # fmt: skip
    assert portion_ends(20, FRACTIONS) == [1, 2, 5, 10, 20]


def test_sentences_are_sent_whole() -> None:
    sentences = np.repeat(np.arange(20), 3).astype(np.int64)
    order = sending_order(sentences, 1)
    assert sorted(order.tolist()) == list(range(60))
    sent = sentences[order].reshape(20, 3)
    assert (sent == sent[:, :1]).all() and sent[:, 0].tolist() != list(range(20))


def test_center_of_gravity() -> None:
    parts = dict.fromkeys(("factors", "shift", "weight", "bias"), torch.empty(0))
    mix = ScalarMix(layers=(1, 2, 6), shares=(0.5, 0.25, 0.25), gamma=1.0, **parts)
    assert mix.center_of_gravity == 2.5


def test_baselines_take_the_most_frequent_class() -> None:
    problem = ProbeProblem(name="p", classes=("A", "B", "C"))
    own = SentenceTargets(
        vectors=range(7), classes=[2, 1, 2, 1, 0, 1, 2], types=["x", "x", "x", "y", "y", "z", "z"]
    )
    baselines = fit_baselines(gather(problem, [own], [7]))
    # B and C come three times each: the lower number wins, as it does for y and z.
    assert baselines.majority == 1
    assert baselines.by_type == {"x": 2, "y": 0, "z": 1}
    assert baselines.predict("type_majority", ["x", "new", "y"], 3).tolist() == [2, 1, 0]
    assert baselines.predict("majority", [], 2).tolist() == [1, 1]
    assert fit_baselines(gather(problem, [SentenceTargets(vectors=[0], classes=[2])], [1])).names() == (
        "majority",
    )
