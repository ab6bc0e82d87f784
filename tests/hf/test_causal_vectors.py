from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from harness.errors import UsageError
from harness.models.capabilities import EmbedOptions
from harness.testing.examples import SENTENCES

from .conftest import PIECE_LIMIT, Open


def states(folder: Path, text: str, layer: int) -> torch.Tensor:
    """Return one layer's states of one text, through transformers alone."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = (tokenizer(text)["input_ids"] or [tokenizer.eos_token_id])[:PIECE_LIMIT]
    with torch.no_grad():
        output = AutoModel.from_pretrained(folder).eval()(torch.tensor([ids]), output_hidden_states=True)
    found: torch.Tensor = output.hidden_states[layer][0]
    return found


@pytest.mark.parametrize("family", ["llama", "gpt2"])
@pytest.mark.parametrize(("pooling", "layer"), [("mean", 3), ("last", 3), ("last", 1), ("mean", 0)])
def test_vectors_are_those_of_transformers(
    decoder_folders: dict[str, Path], open_decoder: Open, family: str, pooling: Any, layer: int
) -> None:
    folder, texts = decoder_folders[family], [*SENTENCES, ""]
    options = EmbedOptions(pooling=pooling, layer=layer)
    vectors = open_decoder(folder, batch_tokens=150).embed(texts, side="query", options=options)
    for text, vector in zip(texts, vectors, strict=True):
        one = states(folder, text, layer)
        expected = one.mean(dim=0) if pooling == "mean" else one[-1]
        np.testing.assert_allclose(vector, (expected / expected.norm()).numpy(), atol=1e-5)


def test_prefixes_and_what_a_decoder_cannot_pool(open_llama: Open, llama: Any) -> None:
    model = open_llama(query_prefix="red ", pooling="last")
    last = EmbedOptions(pooling="last")
    plain = llama.embed(["red cat", "cat"], side="query", options=last)
    np.testing.assert_allclose(model.embed(["cat"], side="query")[0], plain[0], atol=1e-5)
    np.testing.assert_allclose(model.embed(["cat"], side="passage")[0], plain[1], atol=1e-5)
    for pooling in ("cls", "pooler"):
        with pytest.raises(UsageError, match=f"'{pooling}'"):
            llama.embed(["a"], side="query", options=EmbedOptions(pooling=pooling))


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_words_have_the_states_of_their_first_tokens(
    decoder_folders: dict[str, Path], open_decoder: Open, family: str
) -> None:
    folder = decoder_folders[family]
    model = open_decoder(folder)
    sentence = ["Der", "Hund", "schläft", "猫"]
    ((number, found),) = model.hidden_states([sentence], [0, 2, 3])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = " " + " ".join(sentence)
    begins = len(tokenizer("")["input_ids"])
    firsts = [begins]
    for word in sentence[:-1]:
        firsts.append(firsts[-1] + len(tokenizer(" " + word, add_special_tokens=False)["input_ids"]))
    assert number == 0
    assert model.layer_count() == 4
    for row, layer in enumerate((0, 2, 3)):
        np.testing.assert_allclose(found[row], states(folder, text, layer)[firsts].numpy(), atol=1e-5)
