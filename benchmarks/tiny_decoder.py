"""A small Llama with random weights and a byte-level tokenizer, for benchmarks whose scores mean nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

END = "<|end|>"
PIECES = 4000


def write_decoder(
    folder: Path, texts: Iterable[str], *, vocabulary: int | None = None, hidden: int = 64, window: int = 1024
) -> None:
    """Write model and tokenizer; the tokenizer is trained on `texts`.

    It is filled up to `vocabulary` with unused words.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=PIECES,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if vocabulary is not None:
        state = json.loads(tokenizer.to_str())
        words = state["model"]["vocab"]
        words |= {f"<unused{number}>": number for number in range(len(words), vocabulary)}
        tokenizer = Tokenizer.from_str(json.dumps(state))
    fast: Any = PreTrainedTokenizerFast
    fast(
        tokenizer_object=tokenizer, bos_token=END, eos_token=END, pad_token=END, model_max_length=window
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=window,
        tie_word_embeddings=False,
        bos_token_id=tokenizer.token_to_id(END),
        eos_token_id=tokenizer.token_to_id(END),
        pad_token_id=tokenizer.token_to_id(END),
    )
    LlamaForCausalLM(config).save_pretrained(folder)
