"""Words and their scores, found by characters."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from harness.errors import DataError
from harness.models.requests import SegmentAttention
from harness_translation.overlap.word import split_words, word_scores


def segment(*pieces: tuple[int, int, float]) -> SegmentAttention:
    starts, ends, scores = zip(*pieces, strict=True)
    return SegmentAttention(starts=starts, ends=ends, scores=scores)


def test_words_are_separated_by_spaces() -> None:
    assert [word.text for word in split_words("  It's  done, now.\n")] == ["It's", "done,", "now."]


def test_scripts_without_spaces_are_cut_and_keep_their_punctuation() -> None:
    assert [word.text for word in split_words("“猫坐”。 OK ไทย")] == ["“猫", "坐”。", "OK", "ไ", "ท", "ย"]
    with pytest.raises(DataError, match="--words auto"):
        split_words("猫坐在", "space")


@given(st.text(max_size=40))
def test_words_are_stretches_of_the_text_and_hold_all_but_spaces(text: str) -> None:
    words = split_words(text)
    assert all(text[word.start : word.end] == word.text for word in words)
    covered = [place for word in words for place in range(word.start, word.end)]
    assert covered == [place for place, character in enumerate(text) if not character.isspace()]


def test_pieces_of_a_word_are_summed() -> None:
    text = "unbelievable story"
    attention = segment((0, 2, 0.1), (2, 12, 0.2), (13, 18, 0.4))
    words = split_words(text)
    assert word_scores(attention, text, words) == pytest.approx((0.3, 0.4))
    assert word_scores(attention, text, words, "mean") == pytest.approx((0.15, 0.4))


def test_a_piece_of_several_words_is_shared_by_characters() -> None:
    text = "猫坐在"
    attention = segment((0, 2, 0.6), (2, 3, 0.1))
    assert word_scores(attention, text, split_words(text)) == pytest.approx((0.3, 0.3, 0.1))


def test_the_mark_of_a_words_start_belongs_to_that_word() -> None:
    text = "a b"
    attention = segment((0, 1, 0.5), (1, 2, 0.25), (2, 3, 0.125), (3, 3, 0.7))
    assert word_scores(attention, text, split_words(text)) == pytest.approx((0.5, 0.375))


def test_a_piece_outside_of_all_words_is_rejected() -> None:
    with pytest.raises(DataError, match=r"'a' .*0 words"):
        word_scores(segment((0, 1, 0.5)), "ab", [])


def test_a_word_without_a_piece_has_nothing() -> None:
    assert word_scores(segment((0, 1, 0.5)), "a b", split_words("a b")) == (0.5, 0.0)


@given(st.text(alphabet="ab 猫坐ไท.", min_size=1, max_size=20), st.data())
def test_no_score_is_lost(text: str, data: st.DataObject) -> None:
    """Words get the scores of all pieces except those of trailing spaces."""
    cuts = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=6))})
    pieces = [(first, last, 0.25) for first, last in itertools.pairwise(cuts)]
    words = split_words(text)
    total = sum(word_scores(segment(*pieces), text, words))
    last = words[-1].end if words else 0
    assert total == pytest.approx(0.25 * sum(first < last for first, _, _ in pieces))
