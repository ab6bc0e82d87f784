"""Pre-tokens: what a tagger gets where there are no gold tokens."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from harness.kinds.pretoken import pretokens
from harness.languages.character import splits_combination


def _pieces(text: str) -> list[str]:
    return [text[piece.start : piece.end] for piece in pretokens(text)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Dr. Dre's 2nd CD (1999)…", ["Dr", ".", "Dre", "'", "s", "2nd", "CD", "(", "1999", ")", "…"]),
        ("e\u0301te\u0301 naïve", ["e\u0301te\u0301", "naïve"]),
        ("किताबें पढ़ी।", ["किताबें", "पढ़ी", "।"]),
        ("olori \u0300\u0301n síl", ["olori", "\u0300\u0301n", "síl"]),
        ("می\u200cروم.", ["می\u200cروم", "."]),
        ("東京タワー2024年。", ["東", "京", "タ", "ワ", "ー", "2024", "年", "。"]),
        ("か\u3099く", ["か\u3099", "く"]),
        ("ที่นี่ Thai", ["ที่", "นี่", "Thai"]),
        ("မြန်မာ ၁၂", ["မြ", "န်", "မာ", "၁၂"]),
        ("ខ្មែរ", ["ខ្", "មែ", "រ"]),
        ("한국어 x東y", ["한국어", "x", "東", "y"]),
        ("👩\u200d🚀👍🏽!\ufe0f", ["👩\u200d🚀", "👍", "🏽", "!\ufe0f"]),
        ("a\u200bb\u00a0c\u3000d", ["a", "b", "c", "d"]),
        ("\ufeff a \u200e\u200d\u200eb\u200e", ["a", "\u200e\u200d\u200eb\u200e"]),
        (" \ufeff\n", []),
        ("", []),
    ],
)
def test_the_rule(text: str, pieces: list[str]) -> None:
    assert _pieces(text) == pieces


@given(st.text(st.characters() | st.sampled_from("a1 東ก\u0301\u094d\u200d\u200c\u200b👩(.")))
def test_pretokens_are_in_order_and_lose_nothing_visible(text: str) -> None:
    found = pretokens(text)
    covered = set()
    before = 0
    for piece in found:
        assert before <= piece.start < piece.end <= len(text)
        covered |= set(range(piece.start, piece.end))
        before = piece.end
    for position, character in enumerate(text):
        if position not in covered:
            assert character.isspace() or unicodedata.category(character) == "Cf"


@given(st.text(st.sampled_from("ab1 東ก\u0301\u094d\u3099(.़"), max_size=12))
def test_no_pretoken_cuts_a_combined_character(text: str) -> None:
    for piece in pretokens(text):
        assert not splits_combination(text, piece.start)
        assert not splits_combination(text, piece.end)


def test_only_letters_of_scripts_without_spaces_may_go_on() -> None:
    text = "x 東京1。"
    assert [piece.unspaced for piece in pretokens(text)] == [False, True, True, False, False]
