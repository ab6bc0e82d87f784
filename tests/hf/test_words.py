from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_hf.inference.word_vectors import split_sentences

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
