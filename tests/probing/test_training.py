from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from harness.errors import ContractError, DataError, TrainingError, UsageError
from harness_probing.fitting import FittedProbes, SplitTargets, best_layer, fit_probes
from harness_probing.settings import PRESETS, ProbeSettings
from harness_probing.states import Scaling, read_features, scaling_of
from harness_probing.training import (
    LabelledFeatures,
    batch_size,
    dev_weights,
    epoch_batches,
    initial_weights,
    train_probes,
)
from tests.probing.conftest import LAYERS, MakeSplit, Split

CPU = torch.device("cpu")
QUICK = ProbeSettings(seeds=(0, 7), fractions=(), mix=False, learning_rate=1e-2, max_epochs=12)


def _labelled(split: Split, settings: ProbeSettings) -> LabelledFeatures:
    features = read_features(split.states, split.targets.vectors, LAYERS, CPU)
    scaling_of(features).apply(features)
    classes = torch.as_tensor(split.targets.classes).expand(len(settings.seeds), 1, -1)
    sentences = split.targets.sentences
    return LabelledFeatures(class_count=4, features=features, classes=classes, sentences=sentences)


def _predictions(fitted: FittedProbes, split: Split, layer: int, seed: int = 0, task: int = 0) -> list[int]:
    x = torch.as_tensor(split.states.read(layer, split.targets.vectors))
    index = fitted.layers.index(layer)
    logits = x @ fitted.weight[seed, task, index] + fitted.bias[seed, task, index]
    found: list[int] = logits.argmax(dim=-1).tolist()
    return found


def _plain_training(
    train: LabelledFeatures, dev: LabelledFeatures, layer: int, seed: int, settings: ProbeSettings
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Train one probe with torch's own Linear, loss and AdamW; return its best weights, biases and epoch."""
    x, y = train.features[layer], train.classes[0, 0]
    linear = torch.nn.Linear(x.shape[1], 4)
    weight, bias = initial_weights(settings, seed, x.shape[1], 4)
    with torch.no_grad():
        linear.weight.copy_(weight.T)
        linear.bias.copy_(bias)
    optimizer = torch.optim.AdamW(
        linear.parameters(),
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        eps=settings.epsilon,
    )
    shares = torch.as_tensor(dev_weights(settings, dev.sentences))
    best, waited, kept = float("inf"), 0, (weight, bias, 0)
    masks = torch.Generator().manual_seed(seed)
    for epoch in range(settings.max_epochs):
        passed: list[list[torch.Tensor]] = []
        for items in epoch_batches(settings, train.sentences, seed, epoch):
            optimizer.zero_grad()
            batch = x[items]
            if settings.dropout:
                drawn = torch.rand(batch.shape, generator=masks)
                batch = batch * (drawn >= settings.dropout) / (1 - settings.dropout)
            torch.nn.functional.cross_entropy(linear(batch), y[items]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            passed.append([linear.weight.detach().T.clone(), linear.bias.detach().clone()])
        passed = passed if settings.average else passed[-1:]
        weight, bias = (torch.stack(parts).mean(dim=0) for parts in zip(*passed, strict=True))
        losses = torch.nn.functional.cross_entropy(
            dev.features[layer] @ weight + bias, dev.classes[0, 0], reduction="none"
        )
        loss = float((losses * shares).sum())
        waited = 0 if loss < best else waited + 1
        if loss < best:
            best = loss
            kept = weight, bias, epoch + 1
        if waited >= settings.patience:
            break
    return kept


@pytest.mark.parametrize(
    "settings",
    [
        QUICK,
        replace(QUICK, dropout=0.3, patience=1, average=False),
        replace(
            QUICK, zero_start=False, batch_unit="sentences", batch_size=8, dropout=0.1, learning_rate=0.05
        ),
    ],
    ids=["plain", "dropout", "sentences"],
)
def test_training_together_equals_training_one_by_one(
    train: Split, dev: Split, settings: ProbeSettings
) -> None:
    learnt, judging = _labelled(train, settings), _labelled(dev, settings)
    together = train_probes(learnt, judging, settings, seeds=settings.seeds)
    stops = set()
    for row, seed in enumerate(settings.seeds):
        for layer in range(len(LAYERS)):
            weight, bias, epoch = _plain_training(learnt, judging, layer, seed, settings)
            assert int(together.epochs[row, 0, layer]) == epoch
            stops.add(epoch)
            torch.testing.assert_close(together.weight[row, 0, layer], weight, rtol=1e-3, atol=1e-4)
            torch.testing.assert_close(together.bias[row, 0, layer], bias, rtol=1e-3, atol=1e-4)
    assert len(stops) > 1, "the probes must stop at different epochs for this test to say something"


def test_blocks_of_layers_change_nothing(
    train: Split, dev: Split, split_targets: SplitTargets, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = fit_probes(train.states, dev.states, split_targets, QUICK)
    monkeypatch.setattr("harness_probing.fitting.layer_blocks", lambda layers, **_: [range(len(layers))])
    together = fit_probes(train.states, dev.states, split_targets, QUICK)
    torch.testing.assert_close(alone.weight, together.weight, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(alone.dev_confusion, together.dev_confusion)


def test_a_seed_gives_the_same_probe_whatever_it_is_trained_with(
    train: Split, dev: Split, split_targets: SplitTargets
) -> None:
    both = fit_probes(train.states, dev.states, split_targets, QUICK)
    again = fit_probes(train.states, dev.states, split_targets, QUICK)
    alone = fit_probes(train.states, dev.states, split_targets, replace(QUICK, seeds=(7,)))
    assert torch.equal(both.weight, again.weight)
    torch.testing.assert_close(both.weight[1:], alone.weight, rtol=1e-3, atol=1e-4)
    assert not torch.equal(both.weight[0], both.weight[1])


def test_the_control_task_changes_nothing_of_the_task(
    train: Split, dev: Split, split_targets: SplitTargets
) -> None:
    # Noisy losses on dev, and control probes that go on when those of the task have stopped.
    settings = replace(QUICK, average=False, learning_rate=0.1, patience=1, max_epochs=30)
    with_control = fit_probes(train.states, dev.states, split_targets, settings)
    without = fit_probes(train.states, dev.states, split_targets, replace(settings, control=False))
    assert (with_control.epochs[:, 1] > with_control.epochs[:, 0] + 1).any()
    np.testing.assert_array_equal(with_control.epochs[:, 0], without.epochs[:, 0])
    np.testing.assert_array_equal(with_control.dev_confusion[:, 0], without.dev_confusion[:, 0])


def test_the_best_layer_is_not_that_of_the_embeddings() -> None:
    assert best_layer((0, 1, 2), np.array([0.9, 0.5, 0.6])) == 2
    assert best_layer((0, 4, 8), np.array([0.9, 0.5, 0.5])) == 4
    assert best_layer((0,), np.array([0.9])) == 0


def test_as_good_as_scikit_learn_in_every_layer(
    train: Split, dev: Split, held_out: Split, split_targets: SplitTargets
) -> None:
    settings = replace(QUICK, seeds=(0,), learning_rate=1e-3, max_epochs=100, control=False)
    fitted = fit_probes(train.states, dev.states, split_targets, settings)
    scores = []
    for layer in LAYERS:
        x, test = (own.states.read(layer, own.targets.vectors) for own in (train, held_out))
        mean, sd = x.mean(axis=0), x.std(axis=0)
        peer = LogisticRegression(max_iter=1000).fit((x - mean) / sd, train.targets.classes)
        gold = held_out.targets.classes
        theirs = f1_score(gold, peer.predict((test - mean) / sd), average="weighted")
        ours = f1_score(gold, _predictions(fitted, held_out, layer), average="weighted")
        assert ours >= theirs - 0.015
        scores.append(ours)
    assert scores[0] < scores[2] < scores[1]
    assert fitted.best_layer == 1


def test_a_class_missing_in_train_is_never_predicted(make_split: MakeSplit, dev: Split) -> None:
    three_classes = make_split(150, seed=1, used=3)
    targets = SplitTargets(train=three_classes.targets, dev=dev.targets)
    fitted = fit_probes(three_classes.states, dev.states, targets, QUICK)
    assert fitted.dev_confusion[..., 3].sum() == 0
    assert torch.isneginf(fitted.bias[..., 3]).all() and torch.isfinite(fitted.bias[..., :3]).all()
    assert fitted.dev_confusion[:, 0, :, 3].sum() == len(LAYERS) * 2 * fitted.dev_counts[3] > 0
    assert fitted.dev_confusion.sum() == 2 * 2 * len(LAYERS) * len(dev.targets)


def test_scaling_gives_mean_zero_and_variance_one(train: Split) -> None:
    rows = train.targets.vectors[::2]
    array = train.states.array.copy()
    array[:, :, 3] = 5e3
    states = replace(train.states, array=array)
    features = read_features(states, rows, LAYERS, CPU)
    scaling_of(features).apply(features)
    found = features.double()
    varying = [feature for feature in range(found.shape[2]) if feature != 3]
    assert torch.allclose(found.mean(dim=1), torch.zeros(()).double(), atol=1e-4)
    assert torch.allclose(found[..., varying].var(dim=1, correction=0), torch.ones(()).double(), atol=1e-4)
    assert not found[..., 3].any()
    features = read_features(train.states, rows, LAYERS, CPU)
    Scaling.none(*features.shape[::2]).apply(features)
    np.testing.assert_array_equal(features[1].numpy(), train.states.read(1, rows))
    array[1, 7, 3] = np.nan
    with pytest.raises(ContractError, match="layer 1 are not finite"):
        read_features(states, train.targets.vectors, LAYERS, CPU)


@pytest.mark.parametrize("unit", ["vectors", "sentences"])
def test_an_epoch_has_every_item_once(unit: str) -> None:
    settings = ProbeSettings.preset("default", batch_unit=unit, batch_size=4)
    sentences = np.repeat(np.arange(30), np.random.default_rng(0).integers(0, 5, size=30)).astype(np.int64)
    batches = epoch_batches(settings, sentences, 3, 0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(sentences)))
    other = epoch_batches(settings, sentences, 3, 1)
    assert np.concatenate(batches).tolist() != np.concatenate(other).tolist()
    if unit == "sentences":
        assert [len(set(sentences[batch].tolist())) for batch in batches[:-1]] == [4] * (len(batches) - 1)


def test_small_train_sets_get_small_batches() -> None:
    default = PRESETS["default"]
    assert [batch_size(default, count) for count in (10, 1_000, 20_000, 10**6)] == [16, 31, 256, 256]
    assert batch_size(PRESETS["paper"], 1_000) == 128


def test_dev_loss_of_the_paper_is_the_mean_of_batch_means() -> None:
    settings = replace(PRESETS["paper"], batch_size=2)
    sentences = np.array([0, 0, 0, 4, 9], dtype=np.int64)
    np.testing.assert_allclose(dev_weights(settings, sentences), [1 / 8] * 4 + [1 / 2])
    np.testing.assert_allclose(dev_weights(PRESETS["default"], sentences), [0.2] * 5)


def test_the_paper_preset_is_that_of_the_released_notebooks() -> None:
    paper = PRESETS["paper"]
    kept = (paper.dropout, paper.learning_rate, paper.weight_decay, paper.batch_size, paper.max_epochs)
    assert kept == (0.1, 1e-2, 1e-6, 128, 30)
    assert (paper.patience, paper.seeds, paper.choose_on) == (2, (42,), "test")
    assert paper.layers_of(range(13)) == tuple(range(1, 13))
    with pytest.raises(UsageError, match="layer 0"):
        paper.layers_of([0])


def test_problems_that_cannot_be_probed_raise(
    make_split: MakeSplit, train: Split, dev: Split, split_targets: SplitTargets
) -> None:
    single, empty = make_split(5, seed=1, used=1), make_split(1, seed=1, per_sentence=0)
    other = make_split(20, seed=1, classes=("A", "B", "C", "D", "E"))
    absent = replace(other.targets, classes=np.full(len(other.targets), 4))
    for states, own, dev_targets, message in (
        (train.states, single.targets, dev.targets, "'NOUN' in train"),
        (train.states, empty.targets, dev.targets, "no labelled items in train"),
        (train.states, train.targets, empty.targets, "no labelled items in dev"),
        (other.states, other.targets, absent, "no dev item of a class that train has"),
    ):
        with pytest.raises(DataError, match=message):
            fit_probes(states, states, SplitTargets(train=own, dev=dev_targets), QUICK)


def test_a_loss_that_explodes_raises(train: Split, dev: Split) -> None:
    settings = replace(QUICK, learning_rate=1e37)
    with pytest.raises(TrainingError, match="not finite after 1 epoch"):
        train_probes(_labelled(train, settings), _labelled(dev, settings), settings, seeds=(0, 7))
