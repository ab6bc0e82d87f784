"""Probes are evaluated, next to their controls."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, strategies as st
from sklearn.metrics import accuracy_score, f1_score

from harness.errors import ContractError, DataError
from harness_probing.evaluation import Evaluator
from harness_probing.fitting import (
    FittedProbes,
    SplitTargets,
    fit_probes,
    online_code,
    portion_ends,
    sending_order,
)
from harness_probing.problem import ProbeProblem, Targets
from harness_probing.scores import confusion_scores, control_classes, fit_baselines, type_keys
from harness_probing.settings import FRACTIONS, ProbeSettings
from harness_probing.training import LabelledFeatures, ScalarMix, initial_weights
from tests.probing.conftest import LAYERS, MakeSplit, Split
from tests.probing.made_up import SentenceTargets, TestSentence, add_block, gather, results, stream

SETTINGS = ProbeSettings(seeds=(0, 1, 2), learning_rate=1e-2, max_epochs=6, fractions=(0.1, 0.5, 1.0))


@pytest.fixture(scope="module")
def fitted(train: Split, dev: Split, split_targets: SplitTargets) -> list[FittedProbes]:
    return [fit_probes(train.states, dev.states, split_targets, SETTINGS)]


def evaluated(fitted: Sequence[FittedProbes], sentences: Sequence[TestSentence]) -> Evaluator:
    """Return an evaluator that has seen some sentences, in blocks."""
    evaluator = Evaluator(fitted, layers=LAYERS)
    list(stream(evaluator, sentences))
    return evaluator


@pytest.fixture(scope="module")
def seen(fitted: list[FittedProbes], held_out: Split) -> Evaluator:
    return evaluated(fitted, held_out.sentences)


def _direct(own: FittedProbes, split: Split, layer: int, task: int) -> list[list[int]]:
    """Return the predictions of every seed on a whole split, from its stored states."""
    x = torch.as_tensor(split.states.read(layer, split.targets.vectors))
    index = own.layers.index(layer)
    return [
        (x @ own.weight[seed, task, index] + own.bias[seed, task, index]).argmax(dim=-1).tolist()
        for seed in range(len(SETTINGS.seeds))
    ]


@given(st.integers(2, 5).flatmap(lambda k: st.lists(st.tuples(*[st.integers(0, k - 1)] * 2), min_size=1)))
def test_scores_of_counts_are_those_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    confusion = np.zeros((5, 5), dtype=np.int64)
    for pair in pairs:
        confusion[pair] += 1
    gold, predicted = zip(*pairs, strict=True)
    found = confusion_scores(confusion)
    for name, average in (("weighted_f1", "weighted"), ("macro_f1", "macro")):
        theirs = f1_score(gold, predicted, average=average, zero_division=0)
        assert float(found[name]) == pytest.approx(theirs)
    assert float(found["accuracy"]) == pytest.approx(accuracy_score(gold, predicted))


def test_streaming_counts_what_direct_prediction_gives(fitted: list[FittedProbes], held_out: Split) -> None:
    evaluator = Evaluator(fitted, layers=LAYERS)
    predictions = dict(stream(evaluator, held_out.sentences))
    assert list(predictions) == [sentence.id for sentence in held_out.sentences]
    own, counts = fitted[0], evaluator.counts["pos"]
    gold = held_out.targets.classes
    expected = {0: np.stack([gold] * 3), 1: own.controls(held_out.targets.types)}
    for index, layer in enumerate(LAYERS):
        for task in (0, 1):
            for seed, direct in enumerate(_direct(own, held_out, layer, task)):
                scores = confusion_scores(counts.confusion[seed, task, index])
                theirs = f1_score(expected[task][seed], direct, average="weighted", zero_division=0)
                assert float(scores["weighted_f1"]) == pytest.approx(theirs)
    best = own.best_layer
    labels = np.concatenate([found["pos"][best] for found in predictions.values()], axis=1)
    assert labels.tolist() == _direct(own, held_out, best, 0)
    assert set(predictions["s0"]["pos"]) == {best, LAYERS[-1]}
    assert counts.mix is not None
    assert own.mix is not None
    states = torch.as_tensor(
        np.stack([held_out.states.read(layer, held_out.targets.vectors) for layer in LAYERS])
    )
    mixed = own.mix.predict(states).numpy()
    assert int((mixed == gold).sum()) == int(np.diagonal(counts.mix).sum())
    assert (mixed == gold).mean() > 0.8


def test_results_do_not_depend_on_blocks_or_order(
    fitted: list[FittedProbes], held_out: Split, seen: Evaluator
) -> None:
    other = Evaluator(fitted, layers=LAYERS)
    for sentence in reversed(held_out.sentences):
        add_block(other, [sentence])
    assert results(seen) == results(other)


def test_intervals_are_those_of_a_bootstrap_over_clusters(
    fitted: list[FittedProbes], held_out: Split, seen: Evaluator
) -> None:
    tally, layer = seen.counts["pos"].clusters, fitted[0].best_layer
    interval = tally.intervals(layer, seed=5)["accuracy"]
    right, _, gold = tally.counts(layer)
    rng = np.random.default_rng(0)
    drawn = [rng.integers(0, len(gold), size=len(gold)) for _ in range(2_000)]
    replicates = [right[rows].sum() / 3 / gold[rows].sum() for rows in drawn]
    assert interval.se == pytest.approx(np.std(replicates), rel=0.1)
    assert interval.groups == 20 == len({sentence.cluster for sentence in held_out.sentences})
    assert interval.method == "cluster bootstrap"
    assert interval.low is not None and interval.high is not None
    assert interval.low < results(seen)["pos"]["headline"]["accuracy"]["value"] < interval.high
    alone = evaluated(fitted, [replace(sentence, cluster="one") for sentence in held_out.sentences])
    score = results(alone)["pos"]["headline"]["weighted_f1"]
    assert (score["ci"], score["ci_method"]) == (None, "one cluster")


def test_the_result_holds_everything_as_json(seen: Evaluator) -> None:
    pos = json.loads(json.dumps(results(seen), allow_nan=False))["pos"]
    assert [row["layer"] for row in pos["layers"]] == list(LAYERS)
    middle = pos["layers"][1]
    assert middle["test"]["weighted_f1"]["value"] > 0.9 and middle["test"]["weighted_f1"]["sd"] is not None
    difference = middle["test"]["accuracy"]["value"] - middle["control"]["accuracy"]["value"]
    assert middle["selectivity"]["accuracy"]["value"] == pytest.approx(difference)
    assert difference > 0.4
    bits = [row["code"]["bits"] for row in pos["layers"]]
    assert bits[1] == min(bits) and bits[1] < middle["code"]["control_bits"]
    assert pos["headline"] == pos["best_on_dev"] and pos["headline"]["layer"] == 1
    assert pos["best_on_test"]["chosen_on"] == "test" and pos["last"]["layer"] == 2
    assert sum(pos["mix"]["weights"].values()) == pytest.approx(1)
    assert max(pos["mix"]["weights"], key=pos["mix"]["weights"].__getitem__) == "1"
    assert pos["baselines"]["type_majority"]["accuracy"] > pos["baselines"]["majority"]["accuracy"]
    assert pos["items"]["missing_in_train"] == []


def test_problems_share_one_pass(
    train: Split, dev: Split, held_out: Split, split_targets: SplitTargets
) -> None:
    settings = replace(SETTINGS, seeds=(0,), mix=False, fractions=())
    problem = ProbeProblem(name="noun", classes=("no", "yes"))

    def narrowed(targets: Targets) -> Targets:
        some = slice(None, None, 2)
        return Targets(
            problem=problem,
            vectors=targets.vectors[some],
            classes=(targets.classes[some] == 0).astype(np.int64),
            sentences=targets.sentences[some],
            types=targets.types[some],
        )

    nouns = SplitTargets(train=narrowed(split_targets.train), dev=narrowed(split_targets.dev))
    both = [fit_probes(train.states, dev.states, own, settings) for own in (split_targets, nouns)]
    sentences = []
    for sentence in held_out.sentences:
        own = sentence.targets["pos"]
        classes = [int(number == 0) for number in own.classes[1:3]]
        second = SentenceTargets(vectors=own.vectors[1:3], classes=classes, types=own.types[1:3])
        sentences.append(replace(sentence, targets={"pos": own, "noun": second}))
    result = results(evaluated(both, sentences))
    assert result["pos"]["items"]["test"] == 80 * 6 and result["noun"]["items"]["test"] == 80 * 2
    alone = fit_probes(train.states, dev.states, split_targets, settings)
    assert result["pos"] == results(evaluated([alone], held_out.sentences))["pos"]


def test_the_published_view_takes_the_layer_that_is_best_on_test(
    train: Split, dev: Split, held_out: Split, split_targets: SplitTargets
) -> None:
    settings = ProbeSettings.preset("paper", batch_size=16, max_epochs=4)
    fitted = fit_probes(train.states, dev.states, split_targets, settings)
    # As if dev had preferred the other layer.
    pos = results(evaluated([replace(fitted, best_layer=2)], held_out.sentences))["pos"]
    assert [row["layer"] for row in pos["layers"]] == [1, 2]
    assert (pos["best_on_dev"]["layer"], pos["best_on_test"]["layer"]) == (2, 1)
    values = {row["layer"]: row["test"]["weighted_f1"]["value"] for row in pos["layers"]}
    assert pos["headline"]["layer"] == max(values, key=values.__getitem__)
    assert pos["headline"]["chosen_on"] == "test" and pos["headline"]["weighted_f1"]["ci"] is not None
    assert pos["mix"] is None and "control" not in pos["layers"][0]


def test_classes_missing_in_train_are_counted(make_split: MakeSplit, dev: Split, held_out: Split) -> None:
    three_classes = make_split(150, seed=1, used=3)
    targets = SplitTargets(train=three_classes.targets, dev=dev.targets)
    fitted = fit_probes(three_classes.states, dev.states, targets, SETTINGS)
    evaluator = evaluated([fitted], held_out.sentences)
    items = results(evaluator)["pos"]["items"]
    assert items["missing_in_train"] == ["ADP"]
    assert items["test_items_of_missing_classes"] == int((held_out.targets.classes == 3).sum())
    counts = evaluator.counts["pos"]
    assert counts.confusion[..., 3].sum() == 0 and counts.mix is not None and counts.mix[:, 3].sum() == 0


def test_bad_test_sentences_raise(fitted: list[FittedProbes], held_out: Split) -> None:
    evaluator, good = Evaluator(fitted, layers=LAYERS), held_out.sentences[0]
    broken = good.states.copy()
    broken[2, 1, 0] = np.nan
    for states, message in ((broken, "'s0' are not finite"), (good.states[:2], "expected 3 layers of 6")):
        with pytest.raises(ContractError, match=message):
            add_block(evaluator, [good, replace(good, states=states)])
    assert evaluator.counts["pos"].confusion.sum() == 0, "nothing of a rejected block may be counted"
    with pytest.raises(DataError, match="no labelled items in test"):
        results(evaluator)


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
