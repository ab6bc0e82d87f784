"""Decoders of many makes: absolute, rotary and linear positions, windows, scaled logits, recurrent states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from harness.models.requests import GenerateOptions, LikelihoodRequest

from .conftest import PIECE_LIMIT, decoder_tokenizer

USUAL: Mapping[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": PIECE_LIMIT,
}
MAKES: Mapping[str, Mapping[str, Any]] = {
    "mistral": {**USUAL, "sliding_window": 10},
    "qwen2": USUAL,
    "granite": {**USUAL, "logits_scaling": 3.0},
    "cohere": {**USUAL, "logit_scale": 0.3, "pad_token_id": 0},
    "opt": {
        "hidden_size": 32,
        "ffn_dim": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": PIECE_LIMIT,
        "word_embed_proj_dim": 32,
    },
    "bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "mamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, "pad_token_id": 0},
}
WORDS = ("yes", "no", "also it")
REQUESTS = [
    LikelihoodRequest(context="", continuation=f"The cat sat on the warm mat{more}, {word}, the dog")
    for more in ("", " and a", " good bad")
    for word in WORDS
] + [LikelihoodRequest(context="Der Hund schläft", continuation=f" {word}") for word in WORDS]


@pytest.mark.parametrize("make", MAKES)
def test_answers_are_those_of_one_text_at_a_time(
    make: str, tmp_path: Path, open_decoder: Callable[..., Any]
) -> None:
    tokenizer = decoder_tokenizer(begins=True)
    tokenizer.save_pretrained(tmp_path)
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        make, **{"vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": 1, **MAKES[make]}
    )
    auto_class: Any = AutoModelForCausalLM
    network = auto_class.from_config(config)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() == 2:
                parameter.normal_(0, 0.3)
    network.save_pretrained(tmp_path)
    model = open_decoder(tmp_path, batch_tokens=300)
    network.eval()
    tokens = model._session.tokens

    def logits(ids: list[int]) -> torch.Tensor:
        with torch.no_grad():
            found: torch.Tensor = network(torch.tensor([ids]), use_cache=False).logits[0].float()
        return found

    for one, answer in zip(REQUESTS, model.loglikelihood(REQUESTS), strict=True):
        ids = tokens.encode([one.context + one.continuation])[0]
        places = range(len(ids) - len(answer.token_logprobs), len(ids))
        logprobs = logits(ids[:-1]).log_softmax(dim=-1)
        expected = [float(logprobs[place - 1, ids[place]]) for place in places]
        assert answer.token_logprobs == pytest.approx(expected, abs=1e-4)
    prompts = ["The cat sat on the warm mat", "a", "Der Hund"]
    for prompt, written in zip(
        prompts, model.generate(prompts, [GenerateOptions(max_tokens=6)] * 3), strict=True
    ):
        ids = tokens.encode([prompt])[0]
        size = len(ids)
        while len(ids) < size + 6 and 1 not in ids[size:]:
            ids.append(int(logits(ids)[-1].argmax()))
        assert written.text == model._session.decode(ids[size:])
        assert written.tokens == len(ids) - size
