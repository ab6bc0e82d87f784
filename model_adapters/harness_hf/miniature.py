"""A tiny random model of the architecture that a config.json names, with a tokenizer of bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from harness import AdapterError
from harness_hf.architecture import Family, architecture_of
from harness_hf.loading import first_line, quiet_transformers
from harness_hf.model_folder import ModelConfig

SPECIAL = ("<pad>", "<s>", "</s>", "<unk>", "<mask>")
LAYERS, HEADS = 2, 2
SIZES = {
    name: size
    for names, size in (
        (
            "hidden_size d_model n_embd dim emb_dim embedding_size input_embedding_size output_embedding_size",
            32,
        ),
        ("pooler_hidden_size word_embed_proj_dim", 32),
        ("intermediate_size d_ff ffn_dim encoder_ffn_dim decoder_ffn_dim n_inner hidden_dim", 64),
        ("head_dim d_kv hidden_size_per_layer_input", 16),
        (
            "num_attention_heads num_heads n_head n_heads encoder_attention_heads decoder_attention_heads",
            HEADS,
        ),
        (
            "num_hidden_layers num_layers num_decoder_layers n_layer n_layers encoder_layers decoder_layers",
            LAYERS,
        ),
        ("moe_intermediate_size num_experts num_local_experts n_routed_experts", 4),
        ("num_experts_per_tok experts_per_token", 2),
    )
    for name in names.split()
}
"""Sizes of the tiny model, by the names that transformers' configurations have for them."""
DEPTHS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")
IDS = {"pad": 0, "bos": 1, "cls": 1, "eos": 2, "sep": 2, "unk": 3, "mask": 4, "decoder_start": 0}
AUTO_CLASSES = {
    Family.ENCODER: "AutoModel",
    Family.SEQ2SEQ: "AutoModelForSeq2SeqLM",
    Family.CAUSAL: "AutoModelForCausalLM",
}
"""For a config.json that names no class."""


def save_miniature(model: ModelConfig, folder: Path) -> None:
    """Save the tiny model and its tokenizer; raises `AdapterError` for what transformers has no class of."""
    architecture = architecture_of(model)
    kind = architecture.model_type
    if kind not in CONFIG_MAPPING or architecture.family is None:
        code = "it needs the code of its own repository" if architecture.remote_code else "it is unknown"
        raise AdapterError(
            f"No tiny model of {model.ref!r} can be made: transformers has no architecture {kind!r}, {code}."
        )
    tokenizer = _tokenizer(architecture.family)
    try:
        full_config = CONFIG_MAPPING[kind].from_dict(dict(model.config)).to_dict()
        config = CONFIG_MAPPING[kind].from_dict(_shrink(full_config, len(tokenizer)))
        auto = getattr(transformers, AUTO_CLASSES[architecture.family])
        architecture_class = getattr(transformers, architecture.name, None)
        torch.manual_seed(0)
        network = (auto.from_config if architecture_class is None else architecture_class._from_config)(
            config
        )
        with quiet_transformers():
            network.float().save_pretrained(folder)
    except Exception as error:
        raise AdapterError(f"No tiny model of {model.ref!r} can be made: {first_line(error)}") from error
    tokenizer.save_pretrained(folder)


def _shrink(config: Mapping[str, Any], vocabulary: int) -> dict[str, Any]:
    """Return a configuration with small sizes, nested ones too; a list with an entry per layer keeps each kind."""
    depth = next((config[name] for name in DEPTHS if config.get(name)), None)
    grouped = config.get("num_key_value_heads") != config.get("num_attention_heads")
    small: dict[str, Any] = {}
    for name, value in config.items():
        token = name.removesuffix("_token_id")
        if name in ("quantization_config", "auto_map", "torch_dtype", "dtype"):
            continue
        if isinstance(value, Mapping) and "model_type" in value:
            small[name] = _shrink(value, vocabulary)
        elif value is None:
            small[name] = None
        elif name != token:
            small[name] = IDS.get(token, 0)
        elif isinstance(value, list) and len(value) == depth:
            small[name] = (list(dict.fromkeys(value)) * LAYERS)[:LAYERS]
        elif name.startswith("vocab_size"):
            small[name] = vocabulary
        elif name == "num_key_value_heads":
            small[name] = 1 if grouped else HEADS
        else:
            small[name] = SIZES.get(name, value)
    return small


def _tokenizer(family: Family) -> Any:
    """Return a tokenizer of bytes: encoders have tokens around a text, text-to-text models one after it."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: number for number, piece in enumerate([*SPECIAL, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if family is Family.ENCODER:
        single, pair = "<s> $A </s>", "<s> $A </s> </s> $B </s>"
    else:
        single, pair = "$A </s>", "$A $B </s>"
    if family is not Family.CAUSAL:
        special = [("<s>", 1), ("</s>", 2)]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=single, pair=pair, special_tokens=special
        )
    marks = {f"{name}_token": SPECIAL[number] for name, number in IDS.items() if name != "decoder_start"}
    make: Any = transformers.PreTrainedTokenizerFast
    return make(tokenizer_object=tokenizer, model_max_length=128, **marks)
