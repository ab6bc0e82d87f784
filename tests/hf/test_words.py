from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from harness_hf.inference.pieces import SpecialTokens
from harness_hf.inference.word_vectors import split_sentences

from .conftest import CORPUS, byte_level, fast, unigram, wordpiece
from .families import gemma

ODD_WORDS = [
    "",
    " ",
    "\u200d",
    "\u00ad",
    "\ufeff",
    "e\u0301",
    "👩‍👩‍👧",
    "बिल्ली",
    "القطة",
    "猫",
    "\x00",
    "x" * 300,
]


def windows_of(encoder: Any, sentences: list[list[str]], limit: int, *, unknown: bool = True) -> list[Any]:
    session = encoder._session
    return split_sentences(
        sentences,
        tokenizer=session.tokenizer,
        template=session.single,
        limit=limit,
        unknown_for_empty=unknown,
    )


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sentences=st.lists(st.lists(st.sampled_from(ODD_WORDS) | st.text(max_size=12), max_size=12), max_size=4),
    limit=st.integers(5, 40),
)
def test_every_word_stands_in_one_window(encoder: Any, sentences: list[list[str]], limit: int) -> None:
    windows = windows_of(encoder, sentences, limit)
    words = [
        (window.sentence, window.first_word + number)
        for window in windows
        for number in range(len(window.positions))
    ]
    assert words == [(number, word) for number, one in enumerate(sentences) for word in range(len(one))]
    for window in windows:
        assert len(window.encoded) <= limit
        assert all(0 < position < len(window.encoded) - 1 for position in window.positions)
        assert list(window.positions) == sorted(set(window.positions))


def test_a_short_sentence_is_encoded_as_the_tokenizer_does(encoder: Any) -> None:
    words = ["The", "cat", "sat", "neben", "der", "猫", "बिल्ली"]
    (window,) = windows_of(encoder, [words], 64)
    given = words
    if "Ġ" in "".join(encoder._session.tokenizer.get_vocab()):
        given = [" " + word for word in words]  # a byte-level tokenizer marks words by the space before them
    expected = encoder._session.tokenizer(given, is_split_into_words=True)
    assert window.encoded.input_ids == expected["input_ids"]
    first_pieces = [expected.word_ids().index(number) for number in range(len(words))]
    assert list(window.positions) == first_pieces


def test_a_word_without_pieces_becomes_the_unknown_piece_or_has_none(encoder: Any) -> None:
    (window,) = windows_of(encoder, [["cat", "", "dog"]], 64)
    assert window.encoded.input_ids[window.positions[1]] == encoder._session.tokenizer.unk_token_id
    (window,) = windows_of(encoder, [["cat", "", "dog"]], 64, unknown=False)
    assert window.positions[1] == -1
    assert encoder._session.tokenizer.unk_token_id not in window.encoded.input_ids


def test_windows_are_filled_up_to_the_limit(bert: Any) -> None:
    windows = windows_of(bert, [["cat"] * 10], 6)
    assert [len(window.positions) for window in windows] == [4, 4, 2]
    assert [window.first_word for window in windows] == [0, 4, 8]


def test_a_word_longer_than_a_window_keeps_its_first_pieces(
    folders: dict[str, Path], open_folder: Any
) -> None:
    encoder = open_folder(folders["xlm-roberta"])
    (whole,) = windows_of(encoder, [["zyx" * 15]], 64)
    assert len(whole.encoded) > 20
    windows = windows_of(encoder, [["猫", "zyx" * 15, "猫"]], 12)
    assert [window.first_word for window in windows] == [0, 1, 2]
    assert windows[1].encoded.input_ids[1:11] == whole.encoded.input_ids[1:11]


@pytest.mark.parametrize("sentences", [[], [[]], [[], []]])
def test_nothing_in_nothing_out(bert: Any, sentences: list[list[str]]) -> None:
    assert windows_of(bert, sentences, 16) == []


def tiktoken_style() -> Any:
    """A tokenizer of the sort of Llama 3 and Qwen: text is split by a pattern, then into bytes."""
    tokenizer = Tokenizer(models.BPE())
    pattern = Regex(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(pattern, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return fast(tokenizer, {"eos_token": "<|end|>"})


def sentencepiece_bpe() -> Any:
    """A tokenizer of the sort of Llama 2: the normalizer alone puts ▁ before a text and in the place of spaces."""
    tokenizer = gemma()
    tokenizer.backend_tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    return tokenizer


TOKENIZERS = {
    "wordpiece": wordpiece,
    "unigram": unigram,
    "byte-level": byte_level,
    "gemma": gemma,
    "tiktoken": tiktoken_style,
    "sentencepiece BPE": sentencepiece_bpe,
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_words_become_the_pieces_of_running_text(name: str) -> None:
    tokenizer = TOKENIZERS[name]()
    words = ["The", "cat", "sat", "neben", "der", "Hund", "two"]
    (window,) = split_sentences(
        [words], tokenizer=tokenizer, template=SpecialTokens.around([]), limit=64, unknown_for_empty=True
    )
    text = " ".join(words)
    # The first word is like the others: some tokenizers put the space there themselves.
    texts = [tokenizer(one, add_special_tokens=False)["input_ids"] for one in (text, f" {text}")]
    assert window.encoded.input_ids in texts
    after_first = window.encoded.input_ids[window.positions[1] :]
    assert all(pieces[-len(after_first) :] == after_first for pieces in texts)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_last_pieces_are_those_before_the_next_word(name: str) -> None:
    tokenizer = TOKENIZERS[name]()
    sentence = [["The", "extraordinary", "", "Hund"]]

    def positions(*, read_last: bool) -> tuple[int, ...]:
        (window,) = split_sentences(
            sentence,
            tokenizer=tokenizer,
            template=SpecialTokens.around([7]),
            limit=64,
            unknown_for_empty=True,
            read_last=read_last,
        )
        assert len(window.positions) == 4
        return (*window.positions, len(window.encoded))

    firsts, lasts = positions(read_last=False), positions(read_last=True)
    assert [place + 1 for place in lasts[:3]] == list(firsts[1:4])
    assert lasts[3] + 1 == firsts[4]
