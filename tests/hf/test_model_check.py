"""``harness models check``: tiny random models of the architectures of well-known multilingual models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.errors import AdapterError
from harness_hf.family import AnyFamilyOptions
from harness_hf.inference.text_vectors import TextWriter
from harness_hf.model_check import WORKS, check_model

from ..conftest import Cli

HEADS = {"classification", "dual_encoder", "multiple_choice", "span_extraction", "tagging"}
XLM_R = {
    "model_type": "xlm-roberta",
    "architectures": ["XLMRobertaForMaskedLM"],
    "bos_token_id": 0,
    "eos_token_id": 2,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "max_position_embeddings": 514,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 1,
    "type_vocab_size": 1,
    "vocab_size": 250002,
}
BERT = {
    "model_type": "bert",
    "architectures": ["BertForMaskedLM"],
    "hidden_size": 768,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 0,
    "vocab_size": 119547,
}
MT5 = {
    "model_type": "mt5",
    "architectures": ["MT5ForConditionalGeneration"],
    "d_ff": 1024,
    "d_kv": 64,
    "d_model": 512,
    "decoder_start_token_id": 0,
    "eos_token_id": 1,
    "feed_forward_proj": "gated-gelu",
    "is_encoder_decoder": True,
    "num_decoder_layers": 8,
    "num_heads": 6,
    "num_layers": 8,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
    "vocab_size": 250112,
}
LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "bos_token_id": 1,
    "eos_token_id": 4,
    "head_dim": 128,
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "max_position_embeddings": 4096,
    "num_attention_heads": 16,
    "num_hidden_layers": 24,
    "num_key_value_heads": 8,
    "rope_theta": 10000.0,
    "vocab_size": 128000,
}
GEMMA_3 = {
    "model_type": "gemma3_text",
    "architectures": ["Gemma3ForCausalLM"],
    "bos_token_id": 2,
    "eos_token_id": [1, 106],
    "head_dim": 256,
    "hidden_size": 1152,
    "intermediate_size": 6912,
    "num_attention_heads": 4,
    "num_hidden_layers": 26,
    "num_key_value_heads": 1,
    "pad_token_id": 0,
    "query_pre_attn_scalar": 256,
    "rope_local_base_freq": 10000,
    "rope_theta": 1000000,
    "sliding_window": 512,
    "sliding_window_pattern": 6,
    "vocab_size": 262144,
}
CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "XLM-R, XLM-V, Glot500": XLM_R,
    "e5, BGE-M3": {**XLM_R, "architectures": ["XLMRobertaModel"]},
    "mBERT": BERT,
    "LaBSE": {**BERT, "architectures": ["BertModel"], "vocab_size": 501153},
    "mDeBERTa": {
        "model_type": "deberta-v2",
        "hidden_size": 768,
        "intermediate_size": 3072,
        "layer_norm_eps": 1e-7,
        "max_position_embeddings": 512,
        "max_relative_positions": -1,
        "norm_rel_ebd": "layer_norm",
        "num_attention_heads": 12,
        "num_hidden_layers": 12,
        "pos_att_type": "p2c|c2p",
        "position_biased_input": False,
        "position_buckets": 256,
        "relative_attention": True,
        "share_att_key": True,
        "type_vocab_size": 0,
        "vocab_size": 251000,
    },
    "mT5, Aya-101": MT5,
    "umT5": {
        **MT5,
        "model_type": "umt5",
        "architectures": ["UMT5ForConditionalGeneration"],
        "vocab_size": 256384,
    },
    "RemBERT": {
        "model_type": "rembert",
        "architectures": ["RemBertModel"],
        "hidden_size": 1152,
        "input_embedding_size": 256,
        "intermediate_size": 4608,
        "num_attention_heads": 18,
        "num_hidden_layers": 32,
        "output_embedding_size": 1664,
        "pad_token_id": 0,
        "vocab_size": 250300,
    },
    "mmBERT": {
        "model_type": "modernbert",
        "architectures": ["ModernBertForMaskedLM"],
        "bos_token_id": 2,
        "cls_token_id": 1,
        "eos_token_id": 1,
        "global_attn_every_n_layers": 3,
        "hidden_size": 768,
        "intermediate_size": 1152,
        "local_attention": 128,
        "num_attention_heads": 12,
        "num_hidden_layers": 22,
        "pad_token_id": 0,
        "sep_token_id": 1,
        "vocab_size": 256000,
    },
    "EuroBERT": {
        "model_type": "eurobert",
        "architectures": ["EuroBertForMaskedLM"],
        "auto_map": {
            "AutoConfig": "configuration_eurobert.EuroBertConfig",
            "AutoModel": "modeling_eurobert.EuroBertModel",
        },
        "bos_token_id": 128000,
        "eos_token_id": 128001,
        "hidden_size": 768,
        "intermediate_size": 3072,
        "mask_token_id": 128002,
        "num_attention_heads": 12,
        "num_hidden_layers": 12,
        "num_key_value_heads": 12,
        "pad_token_id": 128001,
        "vocab_size": 128256,
    },
    "Gemma 3 (text)": GEMMA_3,
    "Gemma 3 (text and images)": {
        "model_type": "gemma3",
        "architectures": ["Gemma3ForConditionalGeneration"],
        "text_config": {name: value for name, value in GEMMA_3.items() if name != "architectures"},
        "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, "num_hidden_layers": 27},
    },
    "Qwen3": {
        **LLAMA,
        "model_type": "qwen3",
        "architectures": ["Qwen3ForCausalLM"],
        "bos_token_id": 151643,
        "eos_token_id": 151645,
        "tie_word_embeddings": True,
        "vocab_size": 151936,
    },
    "Aya Expanse": {
        **LLAMA,
        "model_type": "cohere",
        "architectures": ["CohereForCausalLM"],
        "logit_scale": 0.125,
        "pad_token_id": 0,
        "vocab_size": 256000,
    },
    "EuroLLM, Salamandra": LLAMA,
    "Apertus": {
        **LLAMA,
        "model_type": "apertus",
        "architectures": ["ApertusForCausalLM"],
        "hidden_act": "xielu",
        "vocab_size": 131072,
    },
    "SmolLM3": {
        **LLAMA,
        "model_type": "smollm3",
        "architectures": ["SmolLM3ForCausalLM"],
        "no_rope_layer_interval": 4,
        "no_rope_layers": [1, 1, 1, 0] * 6,
    },
}
"""The fields of their config.json that say what they are."""


def write_config(folder: Path, config: Mapping[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize("name", list(CONFIGS))
def test_an_architecture_has_what_its_adapter_offers(tmp_path: Path, name: str) -> None:
    results = check_model(str(write_config(tmp_path, CONFIGS[name])), AnyFamilyOptions())
    adapter = results.pop("adapter")
    heads = {what.removeprefix("fitted: ") for what in results if what.startswith("fitted: ")}
    assert adapter in {"hf-encoder", "hf-causal", "hf-seq2seq"}
    assert heads == ({"text_to_text"} if adapter == "hf-seq2seq" else HEADS)
    assert {what: result for what, result in results.items() if result != WORKS} == {}


def test_an_architecture_with_code_of_its_own_is_named(tmp_path: Path) -> None:
    config = {
        "model_type": "new",
        "architectures": ["NewModel"],
        "auto_map": {"AutoConfig": "configuration.NewConfig", "AutoModel": "modeling.NewModel"},
    }
    with pytest.raises(AdapterError, match="own repository"):
        check_model(str(write_config(tmp_path, config)), AnyFamilyOptions())


@pytest.mark.thorough
def test_what_fails_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TextWriter, "loglikelihood", lambda *arguments: 1 / 0)
    results = check_model(str(write_config(tmp_path, LLAMA)), AnyFamilyOptions())
    assert "ZeroDivisionError" in results["ScoresContinuations"]
    assert results["Generates"] == WORKS


@pytest.mark.thorough
def test_the_command_prints_what_works(cli: Cli, tmp_path: Path) -> None:
    rows = tmp_path / "rows.json"
    folder = write_config(tmp_path / "umt5", CONFIGS["umT5"])
    status, _, err = cli("models", "check", f"hf:{folder}", "--json", rows)
    assert status == 0, err
    tried = {row["tried"]: row["result"] for row in json.loads(rows.read_text(encoding="utf-8"))}
    assert (tried["adapter"], tried["Generates"]) == ("hf-seq2seq", WORKS)
    assert cli("models", "show", f"hf:{folder}")[0] == 2
    assert cli("models", "check", "baseline:majority")[0] == 2
