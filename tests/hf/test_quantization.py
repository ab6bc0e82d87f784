"""Quantised checkpoints: real ones of bitsandbytes on the CPU, and what config.json and headers say of others."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

pytest.importorskip("bitsandbytes")

from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    BertConfig,
    BertModel,
    BitsAndBytesConfig,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from harness.errors import AdapterError
from harness.models.adapters import AdapterEntry
from harness.models.capabilities import ModelDescription, TrainingSettings
from harness.models.options import parse_options
from harness.models.requests import LikelihoodAnswer, LikelihoodRequest
from harness_hf import harness_register_adapters
from harness_hf.model_folder import count_parameters
from harness_hf.quantization import read_quantization, require_trainable
from tests.hf.conftest import sizes, wordpiece

ENTRIES: dict[str, AdapterEntry] = {entry.name: entry for entry in harness_register_adapters()}
FORMS: Mapping[str, Mapping[str, Any]] = {
    "nf4": {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": torch.float32},
    "int8": {"load_in_8bit": True},
}
CLASSES: dict[str, Any] = {
    "hf-causal": AutoModelForCausalLM,
    "hf-seq2seq": AutoModelForSeq2SeqLM,
    "hf-encoder": BertModel,
}
ROUNDING = 0.005
"""bitsandbytes multiplies packed weights on a CPU less exactly than torch does in float32."""
WORDS = ("good", "bad", "yes", "good bad", "bad yes", "yes good cat")
REQUESTS = [
    LikelihoodRequest(context="the cat", continuation=f" {word}")
    for word in ("good", "bad", "yes", "good bad", "bad yes", "yes good cat")
]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of tiny models of the three families, with weights as they are."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    root, tokenizer = tmp_path_factory.mktemp("plain"), wordpiece()
    llama = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=128,
        initializer_range=0.1,  # so that what 4 bits change is more than rounding
    )
    make: Any = T5Config
    t5 = make(
        vocab_size=len(tokenizer),
        d_model=64,
        d_kv=32,
        d_ff=128,
        num_layers=2,
        num_heads=2,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=3,
    )
    bert = BertConfig(**{**sizes(tokenizer, 64), "hidden_size": 64, "intermediate_size": 128})
    networks: dict[str, Any] = {
        "hf-causal": LlamaForCausalLM(llama),
        "hf-seq2seq": T5ForConditionalGeneration(t5),
        "hf-encoder": BertModel(bert),
    }
    for name, network in networks.items():
        network.save_pretrained(root / name)
        tokenizer.save_pretrained(root / name)
    return {name: root / name for name in networks}


@pytest.fixture(scope="module")
def quantised(plain: dict[str, Path]) -> Callable[[str, str], Path]:
    """A function that returns the folder of a model in another form, as save_pretrained writes it."""

    def make(name: str, form: str) -> Path:
        folder = plain[name].with_name(f"{name}-{form}")
        if not folder.is_dir():
            config: Any = BitsAndBytesConfig
            network = CLASSES[name].from_pretrained(plain[name], quantization_config=config(**FORMS[form]))
            network.save_pretrained(folder)
            copy_tokenizer(plain[name], folder)
        return folder

    return make


def copy_tokenizer(source: Path, target: Path) -> None:
    """One that is made anew has its pieces in another order."""
    for file in source.glob("tokenizer*"):
        shutil.copy(file, target)


def described(name: str, folder: Path, **options: str) -> tuple[ModelDescription, Any]:
    given = parse_options(ENTRIES[name], options)
    return ENTRIES[name].describe_model(str(folder), given), given


def opened(name: str, folder: Path, **options: str) -> Any:
    return ENTRIES[name].open(*described(name, folder, **options))


def unpack(name: str, plain: Path, quantised: Path, output: Path) -> None:
    """Write a plain model with the weights of a packed one, as bitsandbytes unpacks them."""
    functional: Any = pytest.importorskip("bitsandbytes.functional")
    packed = dict(CLASSES[name].from_pretrained(quantised).named_parameters())
    network = CLASSES[name].from_pretrained(plain)
    with torch.no_grad():
        for key, parameter in network.named_parameters():
            if (state := getattr(packed[key], "quant_state", None)) is not None:
                parameter.copy_(functional.dequantize_4bit(packed[key].data, state))
    network.save_pretrained(output)
    copy_tokenizer(plain, output)


@pytest.mark.parametrize("form", ["nf4", "int8"])
@pytest.mark.parametrize("name", ["hf-causal", "hf-seq2seq", "hf-encoder"])
def test_parameters_are_those_of_the_model_before(
    plain: dict[str, Path], quantised: Callable[[str, str], Path], name: str, form: str
) -> None:
    folder = quantised(name, form)
    assert described(name, folder)[0].parameters == count_parameters(plain[name])
    assert described(name, folder)[0].metadata["quantised"] == f"{form} (bitsandbytes)"
    assert "quantised" not in described(name, plain[name])[0].metadata


def _totals(scores: Iterable[LikelihoodAnswer]) -> list[float]:
    return [score.total for score in scores]


@pytest.mark.parametrize("options", [{}, {"device_map": "auto"}], ids=["plain", "device_map"])
@pytest.mark.parametrize("name", ["hf-causal", "hf-seq2seq"])
def test_likelihoods_are_those_of_its_unpacked_weights(
    plain: dict[str, Path],
    quantised: Callable[[str, str], Path],
    tmp_path: Path,
    name: str,
    options: dict[str, str],
) -> None:
    unpack(name, plain[name], quantised(name, "nf4"), tmp_path)
    wanted = opened(name, tmp_path).loglikelihood(REQUESTS)
    model = opened(name, quantised(name, "nf4"), **options)
    before = opened(name, plain[name]).loglikelihood(REQUESTS)
    rounding = np.subtract(_totals(model.loglikelihood(REQUESTS)), _totals(wanted))
    quantising = np.subtract(_totals(before), _totals(wanted))
    assert np.abs(rounding).max() < np.abs(quantising).max() / 4
    assert sum(parameter.dtype == torch.uint8 for parameter in model._session.network.parameters()) > 5


def test_vectors_are_those_of_its_unpacked_weights(
    plain: dict[str, Path], quantised: Callable[[str, str], Path], tmp_path: Path
) -> None:
    texts = ["the cat sat", "good bad happy", "Paka ameketi"]
    folder = quantised("hf-encoder", "nf4")
    unpack("hf-encoder", plain["hf-encoder"], folder, tmp_path)
    wanted = opened("hf-encoder", tmp_path).embed(texts, side="query")
    np.testing.assert_allclose(
        opened("hf-encoder", folder).embed(texts, side="query"), wanted, atol=ROUNDING / 10
    )
    before = opened("hf-encoder", plain["hf-encoder"]).embed(texts, side="query")
    assert np.abs(before - wanted).max() > ROUNDING / 5


def test_all_weights_of_a_quantised_model_cannot_be_trained(quantised: Callable[[str, str], Path]) -> None:
    model = opened("hf-encoder", quantised("hf-encoder", "nf4"))
    config = model._session.network.config
    settings = TrainingSettings(learning_rate=1e-3, epochs=1, batch_size=4)
    with pytest.raises(AdapterError, match=r"is quantised, nf4 \(bitsandbytes\).*--recipe qlora"):
        require_trainable("enc", config, settings)
    require_trainable("enc", config, replace(settings, lora_rank=8))


@pytest.mark.parametrize(
    ("config", "title"),
    [
        ({"quant_method": "gptq", "bits": 4}, "4 bit (gptq)"),
        ({"quant_method": "awq", "bits": 4}, "4 bit (awq)"),
        (
            {"quant_method": "compressed-tensors", "format": "pack-quantized"},
            "pack-quantized (compressed-tensors)",
        ),
        ({"quant_method": "fp8", "fmt": "e4m3"}, "e4m3 (fp8)"),
        ({"load_in_8bit": True}, "int8 (bitsandbytes)"),
        ({"load_in_4bit": True}, "fp4 (bitsandbytes)"),
    ],
)
def test_the_form_is_read_from_the_configuration(config: dict[str, Any], title: str) -> None:
    found = read_quantization({"quantization_config": config})
    assert found is not None
    assert found.title == title
    assert read_quantization({}) is None


def test_a_missing_package_is_named_before_anything_is_loaded(
    plain: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness_hf.quantization.find_spec", lambda name: None)
    config = json.loads((plain["hf-causal"] / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "gptq", "bits": 4}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(
        AdapterError, match=r"4 bit \(gptq\), and gptqmodel and optimum are not installed"
    ) as caught:
        described("hf-causal", tmp_path)
    assert caught.value.hint == "Run: pip install gptqmodel optimum"


@pytest.mark.parametrize(
    ("config", "tensors", "wanted"),
    [
        (
            {"quant_method": "gptq", "bits": 4},
            {
                "a.qweight": (8, 32),
                "a.qzeros": (1, 4),
                "a.scales": (1, 32),
                "a.g_idx": (64,),
                "n.weight": (64,),
            },
            64 * 32 + 64,
        ),
        ({"quant_method": "gptq", "bits": 3}, {"a.qweight": (6, 32)}, 64 * 32),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4}}},
            },
            {"a.weight_packed": (32, 8), "a.weight_scale": (32, 1), "a.weight_shape": (2,)},
            32 * 64,
        ),
        ({"quant_method": "fp8"}, {"a.weight": (4, 4), "a.weight_scale_inv": (1, 1)}, 16),
        ({"quant_method": "made-up"}, {"a.weight": (4, 4)}, None),
    ],
    ids=["gptq", "3 bits", "compressed-tensors", "fp8", "unknown"],
)
def test_packed_weights_are_counted_unpacked(
    tmp_path: Path, config: dict[str, Any], tensors: dict[str, tuple[int, ...]], wanted: int | None
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"quantization_config": config}))
    save_file(
        {name: np.zeros(shape, np.int32) for name, shape in tensors.items()}, tmp_path / "model.safetensors"
    )
    assert count_parameters(tmp_path) == wanted
