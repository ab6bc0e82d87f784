"""Tiny models with random weights, saved as folders of Hugging Face."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel, MT5Config, MT5ForConditionalGeneration

from ..hf.conftest import FAMILIES, byte_level, decoder_tokenizer, sizes


def save_encoder(folder: Path, family: str = "bert", tokenizer: Any = None, **changes: Any) -> Path:
    """Save an encoder with its tokenizer, or with another one."""
    config_class, model_class, make_tokenizer, positions = FAMILIES[family]
    own = make_tokenizer()
    torch.manual_seed(0)
    model_class(config_class(**{**sizes(own, positions), **changes})).save_pretrained(folder)
    (tokenizer or own).save_pretrained(folder)
    return folder


def save_text_to_text(folder: Path, **changes: Any) -> Path:
    """Save an mT5 with a byte-level tokenizer."""
    tokenizer = byte_level()
    given = {"vocab_size": len(tokenizer), "decoder_start_token_id": 0, **changes}
    shape = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2}
    MT5ForConditionalGeneration(MT5Config(**{**shape, **given})).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_gpt2(folder: Path, **changes: Any) -> Path:
    """Save a GPT-2 with its tokenizer."""
    tokenizer = decoder_tokenizer(begins=False)
    given = {"vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": 0, **changes}
    GPT2LMHeadModel(GPT2Config(**{"n_embd": 16, "n_layer": 2, "n_head": 2, **given})).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
