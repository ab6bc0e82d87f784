from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.data.records import TextPair
from harness.errors import AdapterError, CapabilityError, DataError, TrainingError
from harness.models.capabilities import FitOptions, Head, HeadSpec, TrainingSettings
from harness.models.options import parse_options
from harness.models.requests import GenerateOptions, LikelihoodRequest
from harness_hf import harness_register_adapters
from harness_hf.description import describe_seq2seq
from harness_hf.fit_record import read_record
from harness_hf.options import Seq2SeqOptions
from harness_hf.seq2seq.adapter import prepare_pairs, token_loss
from harness_hf.training import loop

pytestmark = pytest.mark.thorough

Open = Callable[..., Any]
Options = Callable[..., FitOptions]
SPEC = HeadSpec(head=Head.TEXT_TO_TEXT)


def weights(model: Any) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model._session.network.state_dict().items()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], tolerance: float = 0.0) -> bool:
    return one.keys() == other.keys() and all(
        torch.allclose(one[name], other[name], rtol=0, atol=tolerance) for name in one
    )


def greedy(model: Any, pairs: list[TextPair]) -> list[str]:
    asked = [GenerateOptions(max_tokens=16)] * len(pairs)
    return [answer.text for answer in model.generate([pair.source for pair in pairs], asked)]


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("t5", {"learning_rate": 1e-2}),
        ("mt5", {"learning_rate": 1e-2, "lr_schedule": "constant", "optimizer": "adafactor"}),
    ],
)
def test_phrases_are_learnt(
    seq2seq_folders: dict[str, Path],
    open_seq2seq_folder: Open,
    phrases: list[TextPair],
    fit_options: Options,
    family: str,
    settings: dict[str, Any],
) -> None:
    """Every phrase is written as it was taught, and re-opened the model writes the same."""
    bare = open_seq2seq_folder(seq2seq_folders[family])
    options = fit_options(max_steps=300, eval_steps=100, batch_size=16, max_target_length=16, **settings)
    fitted = bare.fit(phrases, phrases, SPEC, options)
    targets = [pair.target for pair in phrases]
    assert greedy(bare, phrases) != targets
    assert greedy(fitted, phrases) == targets
    assert fitted._session.record.best_score == 1.0
    assert fitted._session.record.metric == "exact_match"
    request = [LikelihoodRequest(context=pair.source, continuation=pair.target) for pair in phrases]
    assert all(answer.is_greedy for answer in fitted.loglikelihood(request))
    reopened = open_seq2seq_folder(options.directory)
    assert greedy(reopened, phrases) == targets
    assert dict(reopened.identity()) == dict(fitted.identity())


@pytest.mark.parametrize("quantize", [None, "nf4"])
def test_low_rank_adapters_are_saved_alone(
    t5: Any,
    open_seq2seq_folder: Open,
    phrases: list[TextPair],
    fit_options: Options,
    quantize: str | None,
) -> None:
    options = fit_options(max_steps=40, batch_size=16, learning_rate=1e-2, lora_rank=4, quantize=quantize)
    fitted = t5.fit(phrases, [], SPEC, options)
    assert [file.name for file in options.directory.glob("*.safetensors")] == ["adapter_model.safetensors"]
    reopened = open_seq2seq_folder(options.directory)
    assert greedy(reopened, phrases) == greedy(fitted, phrases) != greedy(t5, phrases)
    assert dict(reopened.identity()) == dict(fitted.identity())


def test_the_dev_score_is_the_exact_match_of_what_is_written(
    t5: Any, phrases: list[TextPair], fit_options: Options
) -> None:
    """Half of the dev set is taught, so the score is between none and all."""
    odd = [replace(pair, target="no " + pair.target) for pair in phrases[::2]]
    dev = [*odd, *phrases[1::2]]
    options = fit_options(max_steps=60, eval_steps=60, learning_rate=1e-2, batch_size=16)
    fitted = t5.fit(phrases, dev, SPEC, options)
    written = greedy(fitted, dev)
    expected = np.mean([text == pair.target for text, pair in zip(written, dev, strict=True)])
    assert 0 < expected < 1
    assert fitted._session.record.best_score == pytest.approx(expected)


def test_a_step_is_the_same_however_it_is_split(
    seq2seq_folders: dict[str, Path],
    open_seq2seq_folder: Open,
    phrases: list[TextPair],
    fit_options: Options,
    tmp_path: Path,
) -> None:
    """The loss is a mean over the target tokens of the whole step, although targets differ in length."""
    uneven = [replace(pair, target=pair.target * (1 + i % 3)) for i, pair in enumerate(phrases[:10])]
    sizes, found = [], []
    # Dropout would draw other masks for other splits, and Adam without epsilon magnify rounding.
    shutil.copytree(seq2seq_folders["t5"], tmp_path / "plain")
    config = json.loads((tmp_path / "plain" / "config.json").read_text())
    (tmp_path / "plain" / "config.json").write_text(json.dumps({**config, "dropout_rate": 0.0}))
    for budget in (96 * 10, 96 * 2):
        model = open_seq2seq_folder(tmp_path / "plain", train_batch_tokens=budget)
        options = fit_options(str(budget), max_steps=3, batch_size=10, max_target_length=64, adam_epsilon=0.1)
        fitted = model.fit(uneven, [], SPEC, options)
        sizes.append(fitted._session.record.micro_batch)
        found.append(weights(fitted))
    assert sizes == [5, 1]
    assert same(found[0], found[1], tolerance=2e-5)
    assert not same(found[0], weights(model), tolerance=1e-3)


def test_the_loss_is_that_of_transformers(seq2seq: Any, phrases: list[TextPair]) -> None:
    settings = TrainingSettings(learning_rate=1e-3, epochs=1, batch_size=4)
    data = prepare_pairs(seq2seq._session, phrases[:5], [], settings)
    batch = data.collate(list(data.train))
    network = seq2seq._session.network
    with torch.no_grad():
        inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "labels")}
        expected = network(**inputs).loss
        labels = batch.pop("labels")
        outputs = network(**batch)
    assert (labels == -100).any()
    assert float(token_loss(outputs, labels)) == pytest.approx(float(expected), abs=1e-5)
    assert float(token_loss(outputs, labels, 7)) == pytest.approx(
        float(expected) * int((labels != -100).sum()) / 7, abs=1e-3
    )
    for row, pair in zip(labels.tolist(), phrases, strict=False):
        ids = seq2seq._session.tokenizer(text_target=pair.target)["input_ids"]
        assert row[: len(ids)] == ids
        assert set(row[len(ids) :]) <= {-100}


def test_sources_and_targets_are_cut_and_keep_their_end(t5: Any) -> None:
    settings = TrainingSettings(learning_rate=1e-3, epochs=1, batch_size=4, max_length=8, max_target_length=5)
    pair = TextPair(id="1", source="The cat sat on the warm mat", target="Der Hund schläft neben der Tür")
    empty = TextPair(id="2", source="", target="")
    data = prepare_pairs(t5._session, [pair, empty], [], settings)
    cut, nothing = data.train
    source = t5._session.tokenizer(pair.source)["input_ids"]
    target = t5._session.tokenizer(pair.target)["input_ids"]
    assert list(cut.sequences[0].input_ids) == source[-8:]
    assert cut.targets["labels"] == [*target[:4], 1]
    assert (list(nothing.sequences[0].input_ids), nothing.targets["labels"]) == ([1], [1])


def test_a_target_without_a_token_is_rejected(t5: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(t5._session, "target_affixes", replace(t5._session.target_affixes, after=()))
    settings = TrainingSettings(learning_rate=1e-3, epochs=1, batch_size=4)
    with pytest.raises(DataError, match="The pair 'x' has no token in its target ''"):
        prepare_pairs(t5._session, [TextPair(id="x", source="a", target="")], [], settings)


def test_schedule_and_optimiser_are_those_of_the_settings(
    t5: Any, phrases: list[TextPair], fit_options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    real = loop.TrainingRun.take_step

    def watched(run: loop.TrainingRun) -> float:
        loss = real(run)
        optimizer = run.engine.optimizer
        seen.append((type(optimizer).__name__, optimizer.param_groups[0]["lr"]))
        return loss

    monkeypatch.setattr(loop.TrainingRun, "take_step", watched)
    constant = {"lr_schedule": "constant", "optimizer": "adafactor", "learning_rate": 1e-3}
    t5.fit(phrases, [], SPEC, fit_options("a", max_steps=3, **constant))
    t5.fit(phrases, [], SPEC, fit_options("b", max_steps=2, learning_rate=1e-3))
    assert seen == [("Adafactor", 1e-3)] * 3 + [("AdamW", 1e-3), ("AdamW", 5e-4)]


def test_the_folder_and_its_record(
    t5: Any, phrases: list[TextPair], fit_options: Options, open_seq2seq_folder: Open
) -> None:
    before = weights(t5)
    options = fit_options(max_steps=1, max_length=24)
    fitted = t5.fit(phrases, phrases[:3], SPEC, options)
    assert same(before, weights(t5))
    assert {file.name for file in options.directory.iterdir()} == {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "harness_fit.json",
    }
    record = read_record(options.directory)
    assert record is not None
    assert (record.head, record.max_length, record.steps) == (Head.TEXT_TO_TEXT, 24, 1)
    assert record.base == dict(t5.identity())
    assert fitted.context_length() == 24
    assert open_seq2seq_folder(options.directory, max_length=40).context_length() == 40
    assert "sources cut at 24 tokens" in describe_seq2seq(str(options.directory), Seq2SeqOptions()).note
    with pytest.raises(TrainingError, match="already holds a fitted model"):
        t5.fit(phrases, [], SPEC, options)
    again = fitted.fit(phrases, [], SPEC, fit_options("second", max_steps=1))
    assert not same(weights(fitted), weights(again))


def test_the_scheme_hf_opens_a_fitted_folder(t5: Any, phrases: list[TextPair], fit_options: Options) -> None:
    pytest.importorskip("harness_hf.family", reason="hf opens encoders only")
    options = fit_options(max_steps=1)
    fitted = t5.fit(phrases, [], SPEC, options)
    entry = next(entry for entry in harness_register_adapters() if entry.name == "hf")
    given = parse_options(entry, {"score_eos": "true"})
    found = entry.describe_model(str(options.directory), given)
    assert found.adapter == "hf-seq2seq"
    reopened: Any = entry.open(found, given)
    assert same(weights(reopened), weights(fitted))
    request = LikelihoodRequest(context="one cats", continuation="Katzen")
    plain, ended = fitted.loglikelihood([request])[0], reopened.loglikelihood([request])[0]
    assert len(ended.token_logprobs) == len(plain.token_logprobs) + 1


def test_what_cannot_be_fitted_or_read_is_rejected(
    t5: Any, phrases: list[TextPair], fit_options: Options, tmp_path: Path
) -> None:
    with pytest.raises(
        CapabilityError, match="cannot be fitted with a tagging head; it can with text_to_text"
    ):
        t5.fit(phrases, [], HeadSpec(head=Head.TAGGING), fit_options())
    with pytest.raises(TrainingError, match="no training examples"):
        t5.fit([], [], SPEC, fit_options())
    with pytest.raises(AdapterError, match="holds no finished fit"):
        t5.load_fit(tmp_path, SPEC)
    options = fit_options(max_steps=1)
    t5.fit(phrases, [], SPEC, options)
    path = options.directory / "harness_fit.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "head": "tagging"}))
    with pytest.raises(AdapterError, match="holds a tagging fit; expected text_to_text"):
        t5.load_fit(options.directory, SPEC)


def test_a_loss_that_is_not_finite_stops(
    t5: Any, phrases: list[TextPair], fit_options: Options, open_seq2seq_folder: Open
) -> None:
    with torch.no_grad():
        t5._session.network.get_input_embeddings().weight.fill_(float("nan"))
    folder = fit_options("poisoned").directory
    t5._session.network.save_pretrained(folder)
    t5._session.tokenizer.save_pretrained(folder)
    with pytest.raises(TrainingError, match="loss became nan at step 1"):
        open_seq2seq_folder(folder).fit(phrases, [], SPEC, fit_options())
