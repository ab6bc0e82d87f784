from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, ByT5Tokenizer, T5Config, T5ForConditionalGeneration

from harness.errors import AdapterError, CapabilityError, UsageError
from harness.models.capabilities import EmbedOptions, Head
from harness.models.options import parse_options
from harness.models.requests import GenerateOptions, LikelihoodRequest
from harness_hf import harness_register_adapters
from harness_hf.description import SEQ2SEQ_OFFERS, describe_seq2seq
from harness_hf.options import Seq2SeqOptions

Open = Callable[..., Any]
OPTIONS = Seq2SeqOptions()


def write_config(folder: Path, **config: Any) -> str:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


@pytest.mark.parametrize("family", ["t5", "mt5", "bart"])
def test_what_is_offered(seq2seq_folders: dict[str, Path], family: str) -> None:
    found = describe_seq2seq(str(seq2seq_folders[family]), OPTIONS)
    assert found.adapter == "hf-seq2seq"
    assert found.offers == SEQ2SEQ_OFFERS
    assert found.after_fit == {Head.TEXT_TO_TEXT: SEQ2SEQ_OFFERS}
    assert found.metadata["model_type"] == family
    assert found.layers == 2
    assert found.parameters


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}, ["a decoder", "'hf-causal'"]),
        ({"model_type": "xlm-roberta"}, ["an encoder (xlm-roberta)", "'hf-encoder'"]),
        (
            {
                "model_type": "bart",
                "is_encoder_decoder": True,
                "architectures": ["BartForSequenceClassification"],
            },
            ["a BartForSequenceClassification", "writes no text"],
        ),
    ],
)
def test_other_models_are_rejected_by_name(tmp_path: Path, config: dict[str, Any], words: list[str]) -> None:
    ref = write_config(tmp_path / "model", **config)
    with pytest.raises(CapabilityError) as caught:
        describe_seq2seq(ref, OPTIONS)
    assert all(word in str(caught.value) for word in [ref, *words])


@pytest.mark.parametrize(
    "config", [{"model_type": "quasar"}, {"model_type": "whisper", "is_encoder_decoder": True}]
)
def test_unknown_types_are_rejected(tmp_path: Path, config: dict[str, Any]) -> None:
    with pytest.raises(AdapterError, match=config["model_type"]):
        describe_seq2seq(write_config(tmp_path / "model", **config), OPTIONS)


def test_another_pooling_is_no_option() -> None:
    entry = next(entry for entry in harness_register_adapters() if entry.name == "hf-seq2seq")
    with pytest.raises(UsageError, match="option 'pooling' of the adapter 'hf-seq2seq' got 'cls'"):
        parse_options(entry, {"pooling": "cls"})


def test_missing_weights_are_rejected(
    seq2seq_folders: dict[str, Path], open_seq2seq_folder: Open, tmp_path: Path
) -> None:
    """The encoder's weights alone, under a config that promises a decoder."""
    shutil.copytree(seq2seq_folders["mt5"], tmp_path / "half")
    encoder = AutoModel.from_pretrained(seq2seq_folders["mt5"])
    encoder.decoder = torch.nn.Module()
    encoder.save_pretrained(tmp_path / "half")
    config = json.loads((seq2seq_folders["mt5"] / "config.json").read_text())
    (tmp_path / "half" / "config.json").write_text(json.dumps(config))
    with pytest.raises(AdapterError, match=r"'decoder\."):
        open_seq2seq_folder(tmp_path / "half")


def test_a_closed_model_says_so(t5: Any) -> None:
    t5.close()
    t5.close()
    with pytest.raises(AdapterError, match="has been closed"):
        t5.loglikelihood([LikelihoodRequest(context="a", continuation="b")])


def test_languages_need_a_tokenizer_that_knows_them(t5: Any, open_seq2seq_folder: Open) -> None:
    with pytest.raises(UsageError, match="'de_DE'"):
        open_seq2seq_folder(t5._session.folder, source_language="de_DE")


def test_bytes_without_a_fast_tokenizer(tmp_path: Path, open_seq2seq_folder: Open) -> None:
    tokenizer = ByT5Tokenizer()
    torch.manual_seed(0)
    make: Any = T5Config  # the start token is none of its declared fields
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    config = make(vocab_size=len(tokenizer), decoder_start_token_id=0, **sizes)
    T5ForConditionalGeneration(config).save_pretrained(tmp_path / "byt5")
    tokenizer.save_pretrained(tmp_path / "byt5")
    model = open_seq2seq_folder(tmp_path / "byt5")
    assert model.token_counts(["é", ""]) == [3, 1]
    (answer,) = model.loglikelihood([LikelihoodRequest(context="", continuation=" é")])
    assert len(answer.token_logprobs) == 3
    assert model.generate(["é"], [GenerateOptions(max_tokens=3)])[0].tokens <= 3


# Embedding --------------------------------------------------------------------------------------------

TEXTS = ["The cat sat on the warm mat", "", "猫坐在门边", "yes"]


@pytest.mark.parametrize("layer", [0, 1, 2, "last"])
def test_vectors_are_means_of_the_encoder(seq2seq: Any, layer: Any) -> None:
    session = seq2seq._session
    found = seq2seq.embed(TEXTS, side="query", options=EmbedOptions(layer=layer))
    assert found.dtype == np.float32
    for text, vector in zip(TEXTS, found, strict=True):
        with torch.no_grad():
            ids = session.tokenizer(text, return_tensors="pt")["input_ids"]
            output = session.network.get_encoder()(input_ids=ids, output_hidden_states=True)
        states = output.last_hidden_state if layer in ("last", 2) else output.hidden_states[layer]
        mean = states[0].mean(dim=0)
        np.testing.assert_allclose(vector, mean / mean.norm(), atol=1e-5)


def test_vectors_follow_the_options(t5: Any, open_seq2seq_folder: Open) -> None:
    prefixed = open_seq2seq_folder(t5._session.folder, query_prefix="one: ", passage_prefix="two: ")
    np.testing.assert_allclose(
        prefixed.embed(["cat"], side="query"), t5.embed(["one: cat"], side="passage"), atol=1e-6
    )
    np.testing.assert_allclose(
        prefixed.embed(["cat"], side="passage", options=EmbedOptions(prefixes=False)),
        t5.embed(["cat"], side="query"),
        atol=1e-6,
    )
    for pooling in ("cls", "last", "pooler"):
        with pytest.raises(UsageError, match=f"embeds with pooling 'mean', not '{pooling}'"):
            t5.embed(["cat"], side="query", options=EmbedOptions(pooling=pooling))
    with pytest.raises(UsageError, match=r"0 to 2\b.*\b3\b"):
        t5.embed(["cat"], side="query", options=EmbedOptions(layer=3))
    assert t5.embed([], side="query").shape == (0, 32)
