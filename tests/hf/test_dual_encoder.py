from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForTokenClassification

from harness.data.records import Answer, RetrievalPair, SpanExample, TaggedSentence
from harness.errors import AdapterError, DataError, TrainingError
from harness.models.capabilities import EmbedOptions, Embeds, FitOptions, Head, HeadSpec, TrainingSettings
from harness_hf.encoder.dual_encoder import (
    DualEncoder,
    contrast,
    load_dual_encoder,
    prepare_dual_encoder,
    top1_accuracy,
)
from harness_hf.encoder.heads import HEADS
from harness_hf.training import loop

from .conftest import Options, Pairs, PlainVectors, equal, script_scores, weights

pytestmark = pytest.mark.thorough

SPEC = HeadSpec(head=Head.DUAL_ENCODER)
LONG = "cat dog mat door red green blue happy sad good bad one two three " * 4


def scale_of(options: FitOptions) -> float:
    return float(load_file(options.directory / "dual_encoder.safetensors")["scale"])


def settings(**changes: Any) -> TrainingSettings:
    return TrainingSettings(
        **{"learning_rate": 1e-3, "epochs": 1, "batch_size": 4, "max_length": 16, **changes}
    )


def loss(network: Any, batch: Any) -> torch.Tensor:
    found = network(batch["query"], batch["passage"])
    return contrast(found["logits"], found["scale"])


@pytest.mark.parametrize("pooling", ["pooler", "mean", "cls"])
def test_the_loss_is_that_of_the_definition(
    bert: Any, pooling: Any, pairs: Pairs, plain_vectors: PlainVectors
) -> None:
    """Cross entropy of query -> answer over the batch, written out; equal answers stay apart."""
    chosen = settings(pooling=pooling, max_query_length=5, max_length=9)
    train = [
        *pairs(4),
        RetrievalPair(id="same", query="one three", passage=pairs(1)[0].passage),
        RetrievalPair(id="long", query=LONG, passage=LONG),
    ]
    data = prepare_dual_encoder(bert._session, train, [], chosen)
    network = load_dual_encoder(bert._session, chosen, keep_head=False)
    found = loss(network, data.collate(list(data.train)))
    found.backward()  # type: ignore[no-untyped-call]

    reference = AutoModel.from_pretrained(bert._session.folder, dtype=torch.float32).eval()
    scale = torch.tensor(100.0, requires_grad=True)
    tokenizer = bert._session.tokenizer
    queries = plain_vectors(reference, tokenizer, [pair.query for pair in train], 5, pooling)
    answers = plain_vectors(reference, tokenizer, [pair.passage for pair in train], 9, pooling)
    expected = torch.zeros(())
    for row, query in enumerate(queries):
        scores = torch.stack([scale * (query @ answer) for answer in answers])
        expected = expected + torch.log(torch.exp(scores - scores.max()).sum()) + scores.max() - scores[row]
    expected = expected / len(train)
    expected.backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert scale.grad is not None
    torch.testing.assert_close(network.scale.grad, scale.grad.reshape(1), rtol=1e-3, atol=1e-6)
    name = "embeddings.word_embeddings.weight"
    moved, wanted = network.encoder.get_parameter(name).grad, reference.get_parameter(name).grad
    largest = float(wanted.abs().max())
    assert largest > 0
    torch.testing.assert_close(moved / largest, wanted / largest, rtol=0, atol=0.05)


def test_the_loss_has_one_direction(bert: Any, pairs: Pairs) -> None:
    network = load_dual_encoder(bert._session, settings(), keep_head=False).eval()
    torch.nn.init.constant_(network.scale, 1e5)
    data = prepare_dual_encoder(bert._session, pairs(5), [], settings())
    batch = data.collate(list(data.train))
    swapped = {"query": batch["passage"], "passage": batch["query"], "labels": batch["labels"]}
    with torch.no_grad():
        there, back = float(loss(network, batch)), float(loss(network, swapped))
    # A loss of both directions would differ by rounding alone.
    assert there != pytest.approx(back, rel=1e-6)


@pytest.mark.parametrize("pooling", ["pooler", "mean", "cls"])
def test_training_brings_queries_to_their_passages(
    with_head: Any, open_folder: Any, fit_options: Options, pooling: Any, pairs: Pairs
) -> None:
    """Without dropout, whose noise on so small a network outweighs the difference between the texts.

    The thresholds leave room: the pieces that the fixture's tokenizer learns vary between processes.
    """
    bert = open_folder(with_head(AutoModel, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    train = pairs(12)

    def accuracy(model: Any) -> float:
        chosen = EmbedOptions(pooling=pooling)
        sides = [
            model.embed([pair.query for pair in train], side="query", options=chosen),
            model.embed([pair.passage for pair in train], side="passage", options=chosen),
        ]
        return top1_accuracy(np.stack(sides, axis=1), np.arange(len(train)))

    losses: list[float] = []
    real = loop.TrainingRun.take_step

    def recording(run: loop.TrainingRun) -> float:
        losses.append(real(run))
        return losses[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop.TrainingRun, "take_step", recording)
        options = fit_options(pooling=pooling, batch_size=12, epochs=120, learning_rate=2e-3)
        fitted: Any = bert.fit(train, [], SPEC, options)
    assert isinstance(fitted, DualEncoder)
    assert isinstance(fitted, Embeds)
    assert np.mean(losses[-3:]) < losses[0] / 3
    assert accuracy(bert) <= accuracy(fitted)
    assert accuracy(fitted) > 0.8
    assert scale_of(options) != 100.0
    assert abs(scale_of(options) - 100) < 1


def test_what_is_trained_saved_and_opened_is_the_same(
    bert: Any, fit_options: Options, open_folder: Any, monkeypatch: pytest.MonkeyPatch, pairs: Pairs
) -> None:
    trained: list[Any] = []
    real = loop.train_network

    def keeping(load: Any, *args: Any, **keywords: Any) -> Any:
        outcome = real(load, *args, **keywords)
        trained.append(outcome.network)
        return outcome

    monkeypatch.setattr("harness_hf.training.loop.train_network", keeping)
    options = fit_options(max_query_length=7)
    fitted = bert.fit(pairs(24), pairs(8), SPEC, options)
    assert {file.name for file in options.directory.iterdir()} == {
        "config.json",
        "model.safetensors",
        "dual_encoder.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "harness_fit.json",
    }
    assert equal(trained[0].encoder.state_dict(), weights(fitted))
    assert trained[0].scale.item() == scale_of(options) != 100.0
    texts = [LONG, "cat", "the red dog"]
    loaded = bert.load_fit(options.directory, SPEC)
    opened = open_folder(options.directory)
    for side in ("query", "passage"):
        vectors = fitted.embed(texts, side=side)
        np.testing.assert_array_equal(loaded.embed(texts, side=side), vectors)
        np.testing.assert_array_equal(opened.embed(texts, side=side), vectors)
    assert isinstance(opened, DualEncoder)
    assert opened.identity() == loaded.identity() == fitted.identity()
    assert fitted.identity()["head"] == "dual_encoder"
    record = json.loads((options.directory / "harness_fit.json").read_text())
    assert (record["settings"]["pooling"], record["settings"]["max_query_length"]) == ("pooler", 7)
    assert (record["max_length"], record["metric"], record["steps"]) == (32, "top1_accuracy", 9)
    assert 0 <= record["best_score"] <= 1


def test_the_same_seed_gives_the_same_weights(
    folders: dict[str, Path], open_folder: Any, fit_options: Options, pairs: Pairs
) -> None:
    encoder = open_folder(folders["xlm-roberta"])
    first = fit_options("a", seed=5)
    one = encoder.fit(pairs(12), pairs(4), SPEC, first)
    torch.rand(7)
    second, third = fit_options("b", seed=5), fit_options("c", seed=6)
    assert equal(weights(one), weights(encoder.fit(pairs(12), pairs(4), SPEC, second)))
    assert not equal(weights(one), weights(encoder.fit(pairs(12), pairs(4), SPEC, third)))
    assert scale_of(first) == scale_of(second) != scale_of(third)


def test_the_softmax_sees_the_whole_batch(
    open_bert: Any,
    fit_options: Options,
    monkeypatch: pytest.MonkeyPatch,
    pairs: Pairs,
) -> None:
    """Whatever fits into a step elsewhere, and also where the last batch is smaller."""
    shapes: list[tuple[int, ...]] = []

    def counting(vectors: torch.Tensor, scale: torch.Tensor) -> Any:
        shapes.append(tuple(vectors.shape))
        return contrast(vectors, scale)

    monkeypatch.setattr("harness_hf.encoder.dual_encoder.contrast", counting)
    encoder = open_bert(train_batch_tokens=32)
    fitted = encoder.fit(pairs(22), [], SPEC, fit_options(batch_size=8, epochs=1))
    assert shapes == [(8, 2, 32), (8, 2, 32), (6, 2, 32)]
    assert fitted._record.steps == 3


def test_the_best_checkpoint_is_kept(
    bert: Any, fit_options: Options, monkeypatch: pytest.MonkeyPatch, pairs: Pairs
) -> None:
    """The dev score is made to be best after the second of three evaluations; the scale goes with it."""

    def check(vectors: Any, passages: Any) -> None:
        assert vectors.shape == (8, 2, 32)
        assert sorted(passages) == list(range(8))

    states = script_scores(monkeypatch, (0.5, 0.9, 0.1), check)
    options = fit_options()
    fitted = bert.fit(pairs(24), pairs(8), SPEC, options)
    assert len(states) == 3
    best = states[1]
    assert scale_of(options) == float(best.pop("scale")) != float(states[2]["scale"])
    assert equal(weights(fitted), {name.removeprefix("encoder."): value for name, value in best.items()})


def test_top1_accuracy() -> None:
    """Against a loop over pairs; an equal text at another place is right as well."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(3000, 2, 4)).astype(np.float32)
    vectors[7, 1] = vectors[3, 1]
    passages = np.arange(3000)
    passages[7] = 3
    right = 0
    for row in range(3000):
        right += int(passages[int(np.argmax(vectors[:, 1] @ vectors[row, 0]))] == passages[row])
    assert top1_accuracy(vectors, passages) == pytest.approx(right / 3000)
    queries = np.eye(3, dtype=np.float32)
    answers = queries[[0, 0, 2]]
    same_text = top1_accuracy(np.stack([queries[[0, 0, 1]], answers], axis=1), np.array([0, 0, 1]))
    other_text = top1_accuracy(np.stack([queries[[0, 0, 1]], answers], axis=1), np.array([0, 1, 2]))
    assert same_text == pytest.approx(2 / 3)
    assert other_text == pytest.approx(1 / 3)


def test_a_second_stage_goes_on_from_the_first(bert: Any, fit_options: Options, pairs: Pairs) -> None:
    first = fit_options("first")
    fitted = bert.fit(pairs(24), [], SPEC, first)
    before = weights(fitted)
    second = fit_options("second", learning_rate=1e-12, epochs=1)
    again = fitted.fit(pairs(8), [], SPEC, second)
    assert equal(before, weights(fitted))
    for name, value in before.items():
        torch.testing.assert_close(weights(again)[name], value, atol=1e-6, rtol=0)
    assert scale_of(second) == pytest.approx(scale_of(first), abs=1e-4) != 100.0
    assert again._record.base == dict(fitted.identity())


def test_stages_with_other_heads_before_and_after(bert: Any, fit_options: Options, pairs: Pairs) -> None:
    questions = [
        SpanExample(id=str(n), question="who", context="the cat sat", answers=(Answer(text="cat", start=4),))
        for n in range(8)
    ]
    spans = bert.fit(questions, [], HeadSpec(head=Head.SPAN_EXTRACTION), fit_options("spans"))
    still = fit_options("dual", learning_rate=1e-12, epochs=1)
    dual = spans.fit(pairs(8), [], SPEC, still)
    assert isinstance(dual, DualEncoder)
    assert not hasattr(dual, "extract_spans")
    assert scale_of(still) == pytest.approx(100.0)
    name = "encoder.layer.3.output.dense.weight"
    torch.testing.assert_close(weights(dual)[name], weights(spans)[f"bert.{name}"], atol=1e-6, rtol=0)
    sentences = [TaggedSentence(id=str(n), tokens=("the", "cat"), tags=("DET", "NOUN")) for n in range(8)]
    tags = HeadSpec(head=Head.TAGGING, labels=("DET", "NOUN"))
    tagger: Any = dual.fit(sentences, [], tags, fit_options("tags", learning_rate=1e-12, epochs=1))
    torch.testing.assert_close(weights(tagger)[f"bert.{name}"], weights(dual)[name], atol=1e-6, rtol=0)
    assert [len(row) for row in tagger.tag([["the", "cat"]])] == [2]


def test_bad_input_is_rejected(
    bert: Any, with_head: Any, open_folder: Any, fit_options: Options, pairs: Pairs
) -> None:
    for bad, name in (
        (replace(pairs(1)[0], query=" "), "query"),
        (replace(pairs(1)[0], passage=""), "passage"),
    ):
        with pytest.raises(DataError, match=f"The pair '0' has a blank {name}"):
            bert.fit([*pairs(4), bad], [], SPEC, fit_options())
    with pytest.raises(TrainingError, match="no training examples"):
        bert.fit([], pairs(4), SPEC, fit_options())
    options = fit_options(epochs=1)
    fitted = bert.fit(pairs(8), [], SPEC, options)
    with pytest.raises(AdapterError, match="holds a dual_encoder fit"):
        bert.load_fit(options.directory, HeadSpec(head=Head.TAGGING, labels=("X",)))
    (options.directory / "dual_encoder.safetensors").write_bytes(b"not a tensor")
    with pytest.raises(AdapterError, match="does not hold the scale of a dual encoder"):
        fitted.fit(pairs(8), [], SPEC, fit_options("next"))
    tagger = open_folder(with_head(AutoModelForTokenClassification, ["A", "B"]))
    with pytest.raises(AdapterError, match="no record of how its dual encoder was trained"):
        DualEncoder(tagger._session, None, HEADS)
