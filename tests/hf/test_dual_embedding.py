from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

from harness.data.records import RetrievalPair
from harness.errors import UsageError
from harness.models.capabilities import EmbedOptions, Head, HeadSpec, TrainingSettings
from harness_hf.description import describe
from harness_hf.encoder.dual_encoder import (
    prepare_dual_encoder,
)
from harness_hf.fit_record import read_record
from harness_hf.options import EncoderOptions

from .conftest import Options, Pairs, PlainVectors, equal, weights

pytestmark = pytest.mark.thorough

SPEC = HeadSpec(head=Head.DUAL_ENCODER)
LONG = "cat dog mat door red green blue happy sad good bad one two three " * 4


def settings(**changes: Any) -> TrainingSettings:
    return TrainingSettings(
        **{"learning_rate": 1e-3, "epochs": 1, "batch_size": 4, "max_length": 16, **changes}
    )


@pytest.mark.parametrize("pooling", ["pooler", "mean", "cls"])
def test_vectors_are_those_of_the_trained_encoder(
    encoder: Any, fit_options: Options, pooling: Any, pairs: Pairs, plain_vectors: PlainVectors
) -> None:
    """On both sides, for every family, in batches of any size and in any order."""
    options = fit_options(pooling=pooling, epochs=1, max_query_length=6, max_length=12)
    fitted = encoder.fit(pairs(8), [], SPEC, options)
    reference = AutoModel.from_pretrained(options.directory, dtype=torch.float32).eval()
    texts = [LONG, "cat", "", "Der Hund schläft", "猫 👍🏽"] * 3
    for side, limit in (("query", 6), ("passage", 12)):
        found = fitted.embed(texts, side=side)
        with torch.no_grad():
            expected = plain_vectors(reference, fitted._session.tokenizer, texts, limit, pooling).numpy()
        np.testing.assert_allclose(found, expected, atol=2e-6)
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
        backwards = np.concatenate([fitted.embed([text], side=side) for text in texts[::-1]])[::-1]
        np.testing.assert_allclose(found, backwards, atol=1e-6)
        assert found.dtype == np.float32
        assert fitted.embed([], side=side).shape == (0, 32)


def test_each_side_is_cut_at_its_own_length(bert: Any, fit_options: Options, pairs: Pairs) -> None:
    fitted = bert.fit(pairs(8), [], SPEC, fit_options(epochs=1, max_query_length=6, max_length=12))
    four, ten = " ".join(LONG.split()[:4]), " ".join(LONG.split()[:10])
    np.testing.assert_allclose(
        fitted.embed([LONG], side="query"), fitted.embed([four], side="query"), atol=1e-6
    )
    np.testing.assert_allclose(
        fitted.embed([LONG], side="passage"), fitted.embed([ten], side="passage"), atol=1e-6
    )
    asked = EmbedOptions(max_length=12)
    np.testing.assert_allclose(
        fitted.embed([LONG], side="query", options=asked), fitted.embed([ten], side="passage"), atol=1e-6
    )
    beyond = bert.fit(pairs(8), [], SPEC, fit_options("b", epochs=1, max_query_length=900, max_length=900))
    assert beyond._record.max_length == 64
    assert np.isfinite(beyond.embed([LONG * 9], side="query")).all()


def test_training_cuts_each_side_at_its_own_length(bert: Any) -> None:
    data = prepare_dual_encoder(
        bert._session,
        [RetrievalPair(id="1", query=LONG, passage=LONG)],
        [],
        settings(max_query_length=6, max_length=12),
    )
    assert [len(sequence) for sequence in data.train[0].sequences] == [6, 12]


def test_a_call_may_ask_for_other_pooling_and_layers(bert: Any, fit_options: Options, pairs: Pairs) -> None:
    fitted = bert.fit(pairs(8), [], SPEC, fit_options(epochs=1))
    by_fit = fitted.embed(["cat"], side="query")
    np.testing.assert_array_equal(
        fitted.embed(["cat"], side="query", options=EmbedOptions(pooling="pooler")), by_fit
    )
    mean = fitted.embed(["cat"], side="query", options=EmbedOptions(pooling="mean"))
    lower = fitted.embed(["cat"], side="query", options=EmbedOptions(pooling="mean", layer=2))
    assert not np.allclose(mean, by_fit, atol=1e-3)
    assert not np.allclose(mean, lower, atol=1e-3)
    with pytest.raises(UsageError, match="last layer, 4; layer 2"):
        fitted.embed(["cat"], side="query", options=EmbedOptions(layer=2))


def test_the_fit_and_not_the_folder_says_how_to_embed(
    folders: dict[str, Path],
    open_folder: Any,
    open_bert: Any,
    fit_options: Options,
    tmp_path: Path,
    pairs: Pairs,
) -> None:
    folder = tmp_path / "declared"
    shutil.copytree(folders["bert"], folder)
    prompts = {"prompts": {"query": "yes ", "passage": "no "}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 8}')
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_max_tokens": true}')
    plain = open_bert().fit(pairs(8), [], SPEC, fit_options("plain"))
    chosen = {"pooling": "mean", "layer": 1, "max_length": 9}
    declared = open_folder(folder, **chosen).fit(pairs(8), [], SPEC, fit_options("fitted"))
    assert equal(weights(plain), weights(declared))
    for side in ("query", "passage"):
        vectors = plain.embed([LONG, "cat"], side=side)
        np.testing.assert_array_equal(declared.embed([LONG, "cat"], side=side), vectors)


def test_prefixes_that_an_option_gives_are_trained_with(
    bert: Any, open_folder: Any, open_bert: Any, fit_options: Options, pairs: Pairs
) -> None:
    prefixed = open_bert(query_prefix="one ", passage_prefix="two ")
    options = fit_options("prefixed", epochs=1)
    fitted = prefixed.fit(pairs(8), [], SPEC, options)
    spelt_out = [replace(pair, query="one " + pair.query, passage="two " + pair.passage) for pair in pairs(8)]
    reference = bert.fit(spelt_out, [], SPEC, fit_options("reference", epochs=1))
    assert equal(weights(fitted), weights(reference))
    opened = open_folder(options.directory)
    for model in (fitted, opened):
        for side, prefix in (("query", "one "), ("passage", "two ")):
            np.testing.assert_array_equal(
                model.embed(["cat"], side=side), reference.embed([prefix + "cat"], side=side)
            )
        np.testing.assert_array_equal(
            model.embed(["cat"], side="query", options=EmbedOptions(prefixes=False)),
            reference.embed(["cat"], side="query"),
        )


def masked_language_model(folder: Path, source: Path) -> Path:
    """A checkpoint as XLM-R is published: without a pooler."""
    torch.manual_seed(1)
    make: Any = AutoModelForMaskedLM
    make.from_config(AutoConfig.from_pretrained(source)).save_pretrained(folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(source / file, folder / file)
    assert not [name for name in load_file(folder / "model.safetensors") if "pooler" in name]
    return folder


def test_a_checkpoint_without_a_pooler_gets_a_new_one(
    folders: dict[str, Path], open_folder: Any, fit_options: Options, tmp_path: Path, pairs: Pairs
) -> None:
    encoder = open_folder(masked_language_model(tmp_path / "xlmr", folders["xlm-roberta"]))
    with pytest.raises(UsageError, match="trained pooler weights"):
        encoder.embed(["cat"], side="query", options=EmbedOptions(pooling="pooler"))
    one, other = fit_options("one", seed=3), fit_options("other", seed=3)
    fitted = encoder.fit(pairs(12), [], SPEC, one)
    assert equal(weights(fitted), weights(encoder.fit(pairs(12), [], SPEC, other)))
    saved = load_file(one.directory / "model.safetensors")
    assert float(saved["pooler.dense.weight"].std()) > 0.005
    opened = open_folder(one.directory)
    np.testing.assert_array_equal(opened.embed(["cat"], side="query"), fitted.embed(["cat"], side="query"))


def test_a_pooler_that_was_not_trained_is_not_saved(bert: Any, fit_options: Options, pairs: Pairs) -> None:
    options = fit_options(pooling="mean", epochs=1)
    fitted = bert.fit(pairs(8), [], SPEC, options)
    names = load_file(options.directory / "model.safetensors")
    assert names
    assert not [name for name in names if "pooler" in name]
    with pytest.raises(UsageError, match="trained pooler weights"):
        fitted.embed(["cat"], side="query", options=EmbedOptions(pooling="pooler"))


@pytest.fixture
def distilbert(tmp_path: Path, open_folder: Any, open_bert: Any) -> Any:
    """An architecture that has no pooler at all."""
    tokenizer = open_bert()._session.tokenizer
    config = AutoConfig.for_model(
        "distilbert", vocab_size=len(tokenizer), dim=32, n_layers=2, n_heads=2, hidden_dim=64
    )
    torch.manual_seed(0)
    make: Any = AutoModel
    make.from_config(config).save_pretrained(tmp_path / "distilbert")
    tokenizer.save_pretrained(tmp_path / "distilbert")
    return open_folder(tmp_path / "distilbert")


def test_an_architecture_without_a_pooler(distilbert: Any, fit_options: Options, pairs: Pairs) -> None:
    options = fit_options("pooler")
    assert options.settings.pooling == "pooler"
    fitted = distilbert.fit(pairs(8), [], SPEC, options)
    record = read_record(options.directory)
    assert record is not None
    assert (record.pooling, record.settings.pooling) == ("cls", "pooler")
    [notice] = record.notices()
    assert "'cls'" in notice
    texts, first = ["cat", "dog"], EmbedOptions(pooling="cls")
    vectors = fitted.embed(texts, side="passage")
    np.testing.assert_array_equal(vectors, fitted.embed(texts, side="passage", options=first))
    assert not np.allclose(vectors, fitted.embed(texts, side="passage", options=EmbedOptions(pooling="mean")))


def test_what_a_fitted_folder_says_about_itself(bert: Any, fit_options: Options, pairs: Pairs) -> None:
    options = fit_options(epochs=1, pooling="mean", max_query_length=9)
    bert.fit(pairs(8), [], SPEC, options)
    found = describe(str(options.directory), EncoderOptions())
    assert found.note == "a fitted dual encoder: mean pooling, queries cut at 9 pieces, passages at 32"
    assert Head.DUAL_ENCODER in found.after_fit
    assert found.offers == describe(str(bert._session.folder), EncoderOptions()).offers
