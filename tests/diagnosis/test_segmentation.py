from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from harness.languages.segmentation import character_counts, word_counts, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The train at 7.30, doesn't it?", ["The", "train", "at", "7", "30", "doesn't", "it"]),
        ("यह हिन्दी है।", ["यह", "हिन्दी", "है"]),
        ("灯节在2008年", ["灯", "节", "在", "2008", "年"]),
        ("ตู้เย็น", ["ตู้", "เ", "ย็", "น"]),
        ("Visit กรุง now", ["Visit", "ก", "รุ", "ง", "now"]),
        ("l’eau 'quoted' rock'n'roll", ["l’eau", "quoted", "rock'n'roll"]),
        ("cafe\u0301 au lait", ["cafe\u0301", "au", "lait"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("", []),
        ("... !?", []),
    ],
)
def test_words_by_script(text: str, expected: list[str]) -> None:
    assert words([text]) == [expected]


def is_counted(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] != "M" and (category != "Cf" or character == "\u200b")


@given(st.lists(st.text(max_size=30), max_size=8))
def test_counts_are_those_of_each_text_alone(texts: list[str]) -> None:
    assert word_counts(texts).tolist() == [len(own) for own in words(texts)]
    assert word_counts(texts).tolist() == [int(word_counts([text])[0]) for text in texts]
    counted = [[character for character in text if is_counted(character)] for text in texts]
    assert character_counts(texts).tolist() == list(map(len, counted))


@given(st.text())
def test_words_are_pieces_of_the_text_in_order(text: str) -> None:
    place = 0
    for word in words([text])[0]:
        place = text.index(word, place) + len(word)


def test_long_inputs_are_counted_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{'word ' * (number % 7)}{number}" for number in range(200)]
    whole = word_counts(texts)
    monkeypatch.setattr("harness.languages.segmentation.BLOCK", 50)
    assert (word_counts(texts) == whole).all()
    assert [len(own) for own in words(texts)] == whole.tolist()
