"""Encoders with thousands of positions and local attention read a long text whole."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AutoModel,
    AutoTokenizer,
    EuroBertConfig,
    EuroBertModel,
    ModernBertConfig,
    ModernBertModel,
)

from harness.data.records import Answer, SpanExample
from harness.errors import AdapterError
from harness.models.capabilities import EmbedOptions
from harness_hf.description import FLASH_PACKAGES, describe
from harness_hf.encoder.span_extraction import SpanLimits, prepare_span_extraction
from harness_hf.options import EncoderOptions

from .conftest import Open, byte_level

pytestmark = pytest.mark.thorough

POSITIONS = 8192
PIECES = 3000


@pytest.fixture(scope="module", params=["modernbert", "eurobert"])
def long_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random encoder with 8,192 positions."""
    folder = tmp_path_factory.mktemp(request.param)
    tokenizer = byte_level()
    tokenizer.model_max_length = POSITIONS
    given: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "max_position_embeddings": POSITIONS,
        "initializer_range": 0.5,
        **{f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "bos", "eos")},
    }
    torch.manual_seed(0)
    if request.param == "modernbert":
        local: dict[str, Any] = {
            "local_attention": 32,
            "global_attn_every_n_layers": 3,
            "cls_token_id": 0,
            "sep_token_id": 2,
        }
        ModernBertModel(ModernBertConfig(**given, **local)).save_pretrained(folder)
    else:
        EuroBertModel(EuroBertConfig(**given, num_key_value_heads=1)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def vector(folder: Path, text: str) -> tuple[int, Any]:
    """Return the number of pieces of a text and its mean vector, through transformers alone."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        states = (
            AutoModel.from_pretrained(folder)
            .eval()(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
            .last_hidden_state[0]
        )
    mean = states.mean(dim=0)
    return len(states), (mean / mean.norm()).numpy()


def test_a_text_of_thousands_of_pieces_is_embedded_whole(long_folder: Path, open_folder: Open) -> None:
    text = " cat dog" * (PIECES // 2)
    size, expected = vector(long_folder, text)
    assert PIECES <= size <= POSITIONS
    model = open_folder(long_folder)
    # Next to a short text, so that positions of padding are there as well.
    found = model.embed([text, " red", text + " green"], side="query")
    np.testing.assert_allclose(found[0], expected, atol=1e-5)
    assert np.abs(found[0] - found[2]).max() > 1e-6
    cut = model.embed([text, text + " green"], side="query", options=EmbedOptions(max_length=512))
    np.testing.assert_array_equal(cut[0], cut[1])
    assert np.abs(cut[0] - found[0]).max() > 1e-6


def test_heads_read_as_much_as_the_model(long_folder: Path, open_folder: Open) -> None:
    model = open_folder(long_folder)
    special = 2
    assert model.text_room(1) == POSITIONS - special
    assert model.text_room(1, EmbedOptions()) == POSITIONS - special
    assert open_folder(long_folder, max_length=1024).text_room(1) == 1024 - special


def test_a_missing_attention_kernel_is_one_sentence(long_folder: Path, open_folder: Open) -> None:
    if any(map(find_spec, FLASH_PACKAGES)):
        pytest.skip("the kernel may be installed")
    options = EncoderOptions(attn_implementation="flash_attention_2")
    with pytest.raises(AdapterError, match="flash-attn") as raised:
        describe(str(long_folder), options)
    assert "\n" not in str(raised.value)
    assert "-o attn_implementation" in str(raised.value.hint)


def test_contexts_are_as_long_as_the_settings_say(long_folder: Path, open_folder: Open) -> None:
    context = "cat dog " * 900 + "red"
    answer = Answer(text="red", start=context.index("red"))
    example = SpanExample(id="1", question="one", context=context, answers=(answer,))
    session = open_folder(long_folder)._session
    for length in (POSITIONS, 1024):
        limits = SpanLimits(max_length=length, stride=100)
        features = prepare_span_extraction(session, [example], [], limits).train
        assert (len(features) == 1) is (length == POSITIONS)
        assert 900 < max(map(len, features)) <= length
