"""Vectors of sentences, masked words, coverage, and random weights, against transformers alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from harness.errors import CapabilityError

from .conftest import Open

WORDS = ["The", "Katze", "sitzt", "unbelievable"]


def states(folder: Path, ids: list[int], layer: int) -> torch.Tensor:
    """Return one layer's states of a sequence of pieces: shape (pieces, width)."""
    with torch.no_grad():
        output = AutoModel.from_pretrained(folder).eval()(torch.tensor([ids]), output_hidden_states=True)
    found: torch.Tensor = output.hidden_states[layer][0]
    return found


@pytest.mark.parametrize("layer", [0, 2, 4])
@pytest.mark.parametrize("family", ["bert", "xlm-roberta"])
def test_an_encoders_sentence_is_its_first_special_token(
    folders: dict[str, Path], open_folder: Open, family: str, layer: int
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folders[family])
    model = open_folder(folders[family])
    found = dict(model.hidden_states([WORDS, []], [layer], sentence_vector=True))
    for number, words in enumerate((WORDS, [])):
        ids = tokenizer(words, is_split_into_words=True)["input_ids"] if words else tokenizer("")["input_ids"]
        expected = states(folders[family], ids, layer)[0].numpy()
        assert found[number].shape == (1, len(words) + 1, 32)
        np.testing.assert_allclose(found[number][0, 0], expected, atol=2e-6)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_a_decoders_sentence_is_its_last_piece(
    decoder_folders: dict[str, Path], open_decoder: Open, family: str
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(decoder_folders[family])
    found = dict(open_decoder(decoder_folders[family]).hidden_states([WORDS, []], [2], sentence_vector=True))
    ids = tokenizer(" " + " ".join(WORDS))["input_ids"]
    np.testing.assert_allclose(found[0][0, 0], states(decoder_folders[family], ids, 2)[-1].numpy(), atol=2e-5)
    if family == "gpt2":
        assert not found[1].any()  # It reads nothing at all.
    else:
        begin = states(decoder_folders[family], tokenizer("")["input_ids"], 2)[-1].numpy()
        np.testing.assert_allclose(found[1][0, 0], begin, atol=2e-5)


def test_a_masked_word_is_the_mask_token(folders: dict[str, Path], open_bert: Open) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folders["bert"])
    ((_, found),) = open_bert().hidden_states([["The", None, "sitzt"]], [3])
    ids = tokenizer("The [MASK] sitzt")["input_ids"]
    place = ids.index(tokenizer.mask_token_id)
    np.testing.assert_allclose(found[0, 1], states(folders["bert"], ids, 3)[place].numpy(), atol=2e-6)


def test_a_model_without_a_mask_token_masks_nothing(llama: Any) -> None:
    with pytest.raises(CapabilityError, match="no mask token"):
        list(llama.hidden_states([["a", None]], [0]))


def test_coverage_counts_empty_cut_and_split(bert: Any) -> None:
    covered = bert.word_coverage([["cat", "\u200b", "dog"], ["cat"] * 100, ["á" * 600, "b"], []])
    assert [(own.empty, own.cut, own.windows) for own in covered] == [
        ((1,), (), 1),
        ((), (), 2),
        ((), (), 1),
        ((), (), 1),
    ]


def test_a_word_longer_than_the_model_is_cut(decoder_folders: dict[str, Path], open_decoder: Open) -> None:
    model = open_decoder(decoder_folders["gpt2"])
    (own,) = model.word_coverage([["猫" * 200, "b"]])
    assert (own.empty, own.cut, own.windows) == ((), (0,), 2)


def test_random_weights_are_drawn_by_their_seed(bert: Any) -> None:
    state = torch.random.get_rng_state()
    twin = bert.untrained(5)
    assert torch.equal(state, torch.random.get_rng_state())
    trained, drawn = bert._session.network.state_dict(), twin._session.network.state_dict()
    assert trained.keys() == drawn.keys()
    name = "encoder.layer.0.attention.self.query.weight"
    assert not torch.equal(trained[name], drawn[name])
    assert torch.equal(drawn[name], bert.untrained(5)._session.network.state_dict()[name])
    assert 0.01 < float(drawn[name].std()) < 0.03  # BERT's initializer_range
    assert twin.identity() == {**bert.identity(), "weights": "random, seed 5"}
    twin.close()
    assert list(bert.hidden_states([["cat"]], [0]))


def test_a_divided_model_has_no_random_twin(bert: Any) -> None:
    bert._session.options = bert._session.options.model_copy(update={"device_map": "auto"})
    with pytest.raises(CapabilityError, match="divided over several devices"):
        bert.untrained(0)
