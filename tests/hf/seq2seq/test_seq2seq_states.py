from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import ByT5Tokenizer, T5Config, T5ForConditionalGeneration

from harness.errors import CapabilityError

Open = Callable[..., Any]
WORDS = ["The", "cat", "sat", "warm"]


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_words_and_sentences_have_the_states_of_the_encoder(seq2seq: Any, layer: int) -> None:
    session = seq2seq._session
    assert seq2seq.layer_count() == 3
    found = dict(seq2seq.hidden_states([WORDS, []], [layer], sentence_vector=True))
    batch = session.tokenizer(WORDS, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        output = session.network.get_encoder()(input_ids=batch["input_ids"], output_hidden_states=True)
    expected = output.hidden_states[layer][0].numpy()
    places = [batch.word_ids().index(number) for number in range(len(WORDS))]
    np.testing.assert_allclose(found[0][0, 1:], expected[places], atol=1e-5)
    # BART puts <s> before a text, T5 only </s> after it.
    first_special = batch.word_ids().index(None)
    np.testing.assert_allclose(found[0][0, 0], expected[first_special], atol=1e-5)
    assert found[1].shape == (1, 1, expected.shape[1])
    assert found[1].any()


def test_words_need_a_fast_tokenizer(tmp_path: Path, open_seq2seq_folder: Open) -> None:
    tokenizer = ByT5Tokenizer()
    make: Any = T5Config
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    T5ForConditionalGeneration(
        make(vocab_size=len(tokenizer), decoder_start_token_id=0, **sizes)
    ).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(CapabilityError, match="no fast tokenizer"):
        list(open_seq2seq_folder(tmp_path).hidden_states([["a"]], [0]))
