"""Tiny untrained translation models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import M2M100Config, M2M100ForConditionalGeneration, NllbTokenizer


def save_writing(network: Any, tokenizer: Any, folder: Path) -> None:
    """Save an untrained network that writes neither special tokens nor spaces, which would leave its answers empty."""
    with torch.no_grad():
        network.lm_head.weight[[*tokenizer.all_special_ids, tokenizer.convert_tokens_to_ids("▁")]] = 0.0
        network.lm_head.weight[len(tokenizer) :] = 0.0
    network.save_pretrained(folder)


def save_nllb(folder: Path, codes: Sequence[str], *, positions: int = 64, **options: Any) -> Path:
    """Save an untrained NLLB that knows some languages and the letters of a few words."""
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁", *"acdeghmnost", *codes, "<mask>"]
    make: Any = NllbTokenizer
    tokenizer = make(
        vocab={piece: index for index, piece in enumerate(pieces)},
        merges=[],
        extra_special_tokens=list(codes),
        **options,
    )
    config = M2M100Config(
        vocab_size=len(tokenizer),
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=positions,
        decoder_start_token_id=2,
        init_std=0.5,
        tie_word_embeddings=False,
    )
    torch.manual_seed(0)
    save_writing(M2M100ForConditionalGeneration(config), tokenizer, folder)
    tokenizer.save_pretrained(folder)
    return folder
