"""Tiny random models of the encoder families of today, each with a tokenizer of its sort."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModel, PreTrainedModel, T5EncoderModel

from .conftest import CORPUS, PIECE_LIMIT, byte_level, decoder_tokenizer, fast, unigram, wordpiece

SMALL: Mapping[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": PIECE_LIMIT,
}
SPREAD = {"initializer_range": 0.3}
"""Larger weights than usual, so that answers differ."""
DISENTANGLED = {
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_buckets": 16,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "position_biased_input": False,
    "type_vocab_size": 0,
}
"""What mDeBERTa-v3 sets."""

CODE = """
import torch
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput


class OwnConfig(PretrainedConfig):
    model_type = "own_encoder"

    def __init__(self, vocab_size=99, hidden_size=32, num_hidden_layers=2, max_position_embeddings=64, **others):
        self.vocab_size, self.hidden_size, self.num_hidden_layers = vocab_size, hidden_size, num_hidden_layers
        self.max_position_embeddings = max_position_embeddings
        super().__init__(**others)


class OwnModel(PreTrainedModel):
    config_class = OwnConfig
    base_model_prefix = "own"

    def __init__(self, config):
        super().__init__(config)
        self.words = torch.nn.Embedding(config.vocab_size, config.hidden_size)
        self.places = torch.nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.layers = torch.nn.ModuleList(
            torch.nn.MultiheadAttention(config.hidden_size, 2, batch_first=True)
            for _ in range(config.num_hidden_layers)
        )
        self.post_init()

    def get_input_embeddings(self):
        return self.words

    def set_input_embeddings(self, value):
        self.words = value

    def forward(
        self, input_ids, attention_mask, output_hidden_states=False, output_attentions=False, **others
    ):
        states = self.words(input_ids) + self.places.weight[: input_ids.shape[1]]
        found, weights, padding = [states], [], attention_mask == 0
        for layer in self.layers:
            change, own = layer(
                states, states, states, key_padding_mask=padding, average_attn_weights=False
            )
            states = torch.nn.functional.layer_norm(states + change, states.shape[-1:])
            found.append(states)
            weights.append(own)
        return BaseModelOutput(
            last_hidden_state=states,
            hidden_states=tuple(found) if output_hidden_states else None,
            attentions=tuple(weights) if output_attentions else None,
        )
"""


def gemma() -> Any:
    """A tokenizer of Gemma's sort, as mmBERT has it: spaces become ▁ in the normalizer, and words are not split."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    # Trained on text whose words are apart, so that no piece spans two of them.
    spaced = Tokenizer(models.BPE(unk_token="<unk>"))
    spaced.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    spaced.train_from_iterator(CORPUS, trainer)
    tokenizer.model = spaced.model
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse()])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A <eos>",
        pair="<bos> $A <eos> $B <eos>",
        special_tokens=[("<bos>", 2), ("<eos>", 1)],
    )
    names = {name: f"<{name}>" for name in ("bos", "eos", "pad", "unk", "mask")}
    return fast(tokenizer, {f"{name}_token": value for name, value in names.items()})


def sentence_end() -> Any:
    """The tokenizer of T5: a unigram model, with nothing before a text."""
    tokenizer = unigram()
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)]
    )
    return tokenizer


def left_padding() -> Any:
    """The tokenizer of Qwen3-Embedding: byte-level, padded on the left, with an end token after a text."""
    tokenizer = decoder_tokenizer(begins=True)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A $B </s>", special_tokens=[("</s>", 1)]
    )
    tokenizer.pad_token, tokenizer.padding_side = "</s>", "left"
    return tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How a tiny model of a family is made."""

    model_type: str
    tokenizer: Callable[[], Any]
    config: Mapping[str, Any] = field(default_factory=dict)
    has_pooler: bool = True
    options: Mapping[str, str] = field(default_factory=dict)


MODERN = {"local_attention": 16, "global_attn_every_n_layers": 2, **SPREAD}
FAMILIES: Mapping[str, Family] = {
    "bert": Family(model_type="bert", tokenizer=wordpiece, config=SPREAD),
    "xlm-roberta": Family(
        model_type="xlm-roberta",
        tokenizer=unigram,
        config={**SPREAD, "max_position_embeddings": PIECE_LIMIT + 2},
    ),
    "deberta-v2": Family(
        model_type="deberta-v2", tokenizer=unigram, config={**DISENTANGLED, **SPREAD}, has_pooler=False
    ),
    "modernbert": Family(
        model_type="modernbert",
        tokenizer=byte_level,
        config={"cls_token_id": 0, "sep_token_id": 2, **MODERN},
        has_pooler=False,
    ),
    "eurobert": Family(
        model_type="eurobert",
        tokenizer=byte_level,
        config={"num_key_value_heads": 1, "head_dim": 16, **SPREAD},
        has_pooler=False,
    ),
    "mmbert": Family(
        model_type="modernbert",
        tokenizer=gemma,
        config={"cls_token_id": 1, "sep_token_id": 1, **MODERN},
        has_pooler=False,
    ),
    "nomic_bert": Family(model_type="nomic_bert", tokenizer=wordpiece, config=SPREAD),
    "gte": Family(model_type="gte", tokenizer=unigram, config=SPREAD),
    "t5": Family(
        model_type="t5",
        tokenizer=sentence_end,
        config={"d_kv": 16, "d_ff": 64, "num_layers": 2, "feed_forward_proj": "gated-gelu"},
        has_pooler=False,
    ),
    "qwen3": Family(
        model_type="qwen3",
        tokenizer=left_padding,
        config={
            "num_key_value_heads": 1,
            "head_dim": 16,
            "tie_word_embeddings": False,
            "pad_token_id": None,
            **SPREAD,
        },
        has_pooler=False,
    ),
    "remote code": Family(
        model_type="own_encoder",
        tokenizer=wordpiece,
        has_pooler=False,
        options={"trust_remote_code": "true"},
    ),
}


def save_family(folder: Path, name: str) -> Path:
    """Save a random bare model of a family and its tokenizer."""
    family = FAMILIES[name]
    tokenizer = family.tokenizer()
    special = {f"{one}_token_id": getattr(tokenizer, f"{one}_token_id") for one in ("pad", "bos", "eos")}
    given = {**SMALL, "vocab_size": len(tokenizer), **special, **family.config}
    torch.manual_seed(0)
    tokenizer.save_pretrained(folder)
    if family.model_type == "own_encoder":
        return _save_remote(folder, given)
    config: Any = AutoConfig.for_model(family.model_type, **given)
    make: Any = AutoModel
    network: Any = T5EncoderModel(config) if family.model_type == "t5" else make.from_config(config)
    network.save_pretrained(folder)
    return folder


def _save_remote(folder: Path, given: Mapping[str, Any]) -> Path:
    """Save a model whose classes lie in its own folder."""
    made: dict[str, Any] = {}
    exec(CODE, made)
    network: PreTrainedModel = made["OwnModel"](made["OwnConfig"](**given))
    network.save_pretrained(folder)
    (folder / "modeling_own.py").write_text(CODE)
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "modeling_own.OwnConfig", "AutoModel": "modeling_own.OwnModel"}
    (folder / "config.json").write_text(json.dumps(config))
    return folder
