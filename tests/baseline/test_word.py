from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from harness_baseline.span import _read_passage as read_passage
from harness_baseline.text import is_punctuation, shape_of, split_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't go!", ["Don", "'", "t", "go", "!"]),
        ("हिन्दी में बात।", ["हिन्दी", "में", "बात", "।"]),
        ("我们很好。", ["我", "们", "很", "好", "。"]),
        ("می\u200cخواهم بروم", ["می\u200cخواهم", "بروم"]),
        ("cafe\u0301 o\u0300", ["cafe\u0301", "o\u0300"]),
        ("กี่", ["กี่"]),
        ("", []),
    ],
)
def test_words_of_many_scripts(text: str, words: list[str]) -> None:
    assert [word.form for word in split_words(text)] == words


@given(st.text())
def test_offsets_cut_out_the_words_and_only_blanks_are_left(text: str) -> None:
    rest = list(text)
    for word in split_words(text):
        assert text[word.start : word.end] == word.form
        rest[word.start : word.end] = [" "] * (word.end - word.start)
    assert all(unicodedata.category(character) in {"Zs", "Zl", "Zp", "Cc"} for character in rest)


def test_marks_are_punctuation() -> None:
    assert [form for form in ("a", "。", "$", "。。", "1") if is_punctuation(form)] == ["。", "$"]


@pytest.mark.parametrize(
    ("form", "shape"), [("McCoy-1", "AaAa.0"), ("सेब", "c"), ("१२", "0"), ("$5", "$0"), ("", "")]
)
def test_shapes(form: str, shape: str) -> None:
    assert shape_of(form) == shape


@given(st.text(alphabet="aB1 .,।中\u0301", max_size=40))
def test_candidates_stay_inside_the_passage(text: str) -> None:
    passage = read_passage(text)
    assert len(passage.words) == len(passage.classes) == len(passage.sentences)
    assert (passage.firsts <= passage.lasts).all()
    assert (passage.sentences[passage.firsts] == passage.sentences[passage.lasts]).all()


def test_a_full_stop_inside_a_number_ends_no_sentence() -> None:
    assert read_passage("It cost 3.5 euros. Yes.").sentences.tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 1]
