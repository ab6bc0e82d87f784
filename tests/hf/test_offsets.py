from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaForQuestionAnswering,
    RobertaForSequenceClassification,
)

from harness.models.capabilities import SpanQuestion, TextInput
from harness.models.requests import MaskRequest
from harness_hf.causal.session import CausalTokens
from harness_hf.encoder.span_extraction import SpanLimits, split_contexts
from harness_hf.inference.pieces import piece_offsets
from harness_vllm.tokenizing import LocalTokenizer
from tests.hf.conftest import PIECE_LIMIT, byte_level, sizes, split_byte_level, unigram, wordpiece

from .conftest import Open

TOKENIZERS = {
    make.__name__: make().backend_tokenizer for make in (byte_level, split_byte_level, unigram, wordpiece)
}
WORDS = st.sampled_from(
    ["The", "b", "б", "Киев", "म", "猫", "e\u0301", "mat,", "I", "(2019)", "й.", "\u0130x", "👍🏽"]
)
TEXTS = st.lists(st.tuples(st.sampled_from([" ", "\n", "\u00a0", "  ", ""]), WORDS)).map(
    lambda pairs: "".join(space + word for space, word in pairs)
)


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(deadline=None, max_examples=60)
@given(text=TEXTS)
def test_pieces_leave_no_visible_character_out(name: str, text: str) -> None:
    encoded = TOKENIZERS[name].encode(text, add_special_tokens=False)
    pieces = piece_offsets(text, encoded.offsets)
    assert len(pieces) == len(encoded.ids)
    covered = {place for start, end in pieces for place in range(start, end)}
    assert [c for place, c in enumerate(text) if place not in covered and c.isalnum()] == []
    assert all(text[start:end] == text[start:end].strip() for start, end in pieces)


@pytest.mark.parametrize("make", [byte_level, split_byte_level])
@settings(deadline=None, max_examples=60)
@given(text=TEXTS)
def test_trimmed_offsets_become_those_before_trimming(make: Callable[[], Any], text: str) -> None:
    trimming = TOKENIZERS[make.__name__]
    trimmed = piece_offsets(text, trimming.encode(text, add_special_tokens=False).offsets)
    step, trimming.post_processor = trimming.post_processor, None
    try:
        whole = trimming.encode(text, add_special_tokens=False).offsets
    finally:
        trimming.post_processor = step
    tokens = trimming.encode(text, add_special_tokens=False).tokens
    pairs = zip(tokens, trimmed, piece_offsets(text, whole), strict=True)
    assert [pair for token, *pair in pairs if token != "Ġ" and pair[0] != pair[1]] == []


def test_a_character_without_a_piece_belongs_to_its_neighbour() -> None:
    text = "😀cat 😀 dog😀 a"
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(["cat dog a"], trainers.BpeTrainer(show_progress=False))
    encoded = tokenizer.encode(text)
    pieces = piece_offsets(text, encoded.offsets)
    assert [text[start:end] for start, end in pieces] == ["😀cat", "dog😀", "a"]
    assert piece_offsets("cafe\u0301s", [(0, 4), (5, 6)]) == [(0, 4), (5, 6)], "a mark is its letter's"
    assert piece_offsets("", []) == []


@pytest.fixture
def split_folder(tmp_path: Path) -> Callable[[Any], Path]:
    def save(network_class: Any) -> Path:
        tokenizer = split_byte_level()
        torch.manual_seed(0)
        network_class(RobertaConfig(**sizes(tokenizer, PIECE_LIMIT + 2))).save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
        return tmp_path

    return save


def test_words_keep_their_first_letter(split_folder: Any, open_folder: Open) -> None:
    extractor = open_folder(split_folder(RobertaForQuestionAnswering))
    text = "The river a passes Кiев म ."
    asked = [SpanQuestion(id=word, question="Which?", context=f" {word}") for word in ("b", "б", "म", ".")]
    assert [found.text for found in extractor.extract_spans(asked)] == ["b", "б", "म", "."]
    item = SpanQuestion(id="0", question="", context=text)
    (window,) = split_contexts([item], extractor._session, SpanLimits(max_length=PIECE_LIMIT))
    for word in text.split():
        start = text.index(word)
        places = window.pieces_of(start, start + len(word))
        assert places is not None
        first, last = (place - window.context_start for place in places)
        assert (window.offsets[first][0], window.offsets[last][1]) == (start, start + len(word))
    reader = open_folder(split_folder(RobertaForSequenceClassification))
    ((_, attention),) = reader.attentions([TextInput(text=text)])
    assert attention.segments[0].starts[0] == 0
    assert {text.index(word) for word in text.split()} <= set(attention.segments[0].starts)
    ((_, cut),) = reader.attentions([TextInput(text="猫" * 200)])
    assert cut.truncated
    assert max(cut.segments[0].ends) < 200


def test_a_form_of_one_letter_has_a_piece(split_folder: Any, open_folder: Open) -> None:
    filler = open_folder(split_folder(RobertaForMaskedLM))
    requests = [MaskRequest(before="so ", form=form, after=" it") for form in ("a", "म", "no")]
    counts = filler._session.tokenizer([" a", " म", " no"], add_special_tokens=False)["input_ids"]
    answers = filler.fill_masks(requests)
    assert [len(answer.token_logprobs) for answer in answers] == [len(ids) for ids in counts]
    assert not any(answer.straddles for answer in answers)


@pytest.mark.parametrize("word", ["b", "б", "म", "river", "."])
def test_the_border_of_a_continuation_is_that_of_its_text(word: str, tmp_path: Path) -> None:
    tokenizer = split_byte_level()
    tokenizer.save_pretrained(tmp_path)
    context = tokenizer("The cat", add_special_tokens=False)["input_ids"]
    alone = tokenizer(word, add_special_tokens=False)["input_ids"]
    tokens = CausalTokens(ref="split", tokenizer=tokenizer, limit=PIECE_LIMIT, render=str)
    (scored,) = tokens.encode_requests(["The cat"], [f" {word}"])
    split = LocalTokenizer(str(tmp_path)).split("The cat", f" {word}")
    for ids, start, straddles in (
        (scored.ids, scored.start, scored.straddles),
        (split.ids, split.start, split.straddles),
    ):
        assert list(ids[start:]) == alone
        assert list(ids[:start])[-len(context) :] == context
        assert not straddles
