"""Tokens in texts: found where they are, put together where there is no text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from harness.data.alignment import detokenise, locate
from harness.languages.character import is_blank, is_extender, is_unspaced, splits_combination

tokens_of_any_script = st.lists(
    st.text(
        st.characters(exclude_categories=["Z", "C"]) | st.sampled_from("aéß.,()東京กိน"),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize(
    ("tokens", "language", "text"),
    [
        (("Sioux", "Falls", ",", "(", "South", "Dakota", ")", "!"), "en", "Sioux Falls, (South Dakota)!"),
        (("''", "Ice", "Cube", "''"), "en", "'' Ice Cube ''"),
        (("¿", "Qué", "?", "..."), "es", "¿Qué?..."),
        (("گھوٹکی", "،", "وسکونسن", "۔"), "ur", "گھوٹکی، وسکونسن۔"),
        (("한국", "사람", "."), "ko", "한국 사람."),
        (("東", "京", "は", "K", "O"), "ja", "東京はKO"),
        (("北京", "市", "。"), "zh", "北京市。"),
        (("ประเทศ", "ไทย"), "th", "ประเทศไทย"),
        (("၁၈၇၈", "ခုနှစ်တွင်"), "my", "၁၈၇၈ ခုနှစ်တွင်"),
        (("ລາວ", "ໄທ", "Lao", "PDR"), "xx", "ລາວໄທ Lao PDR"),  # not in the table: known by its letters
        (("北京", "大学"), "en", "北京 大学"),
    ],
)
def test_tokens_become_a_text(tokens: tuple[str, ...], language: str, text: str) -> None:
    made, offsets = detokenise(tokens, language)
    assert made == text
    assert tuple(made[start:end] for start, end in offsets) == tokens


@given(tokens_of_any_script, st.sampled_from(["en", "ar", "zh", "th", "my", "xx"]))
def test_a_text_can_be_taken_apart_again(tokens: list[str], language: str) -> None:
    text, offsets = detokenise(tokens, language)
    assert [text[start:end] for start, end in offsets] == tokens
    assert detokenise(tokens, language) == (text, offsets)
    assert locate(tokens, text) == offsets
    rest = "".join(text[end:start] for (_, end), (start, _) in pairwise(offsets))
    assert set(rest) <= {" "}


def test_an_empty_token_is_rejected() -> None:
    with pytest.raises(ValueError, match="token 2 is empty"):
        detokenise(["a", ""], "en")


@pytest.mark.parametrize(
    ("tokens", "text", "surfaces"),
    [
        (("Er", "geht", "zum", "See", "."), "Er geht zum See.", ["Er", "geht", "zum", "See", "."]),
        (("da", "da", "d", "a"), "da dad a", ["da", "da", "d", "a"]),
        (("میروم", "10000"), " می\u200cروم  10 000 ", ["می\u200cروم", "10 000"]),
        (("Việt Nam", "10 000"), "Việt Nam 10\u00a0000", ["Việt Nam", "10\u00a0000"]),
        (("می\u200cروم",), "میروم", ["میروم"]),
        (("\u0300\u0301n", "sí"), "olori \u0300\u0301n sí"[6:], ["\u0300\u0301n", "sí"]),
    ],
)
def test_tokens_are_found_in_their_text(tokens: tuple[str, ...], text: str, surfaces: list[str]) -> None:
    assert [text[start:end] for start, end in locate(tokens, text)] == surfaces


@pytest.mark.parametrize(
    ("tokens", "text", "message"),
    [
        (("a", "c"), "a b", r"token 2, 'c'.*'b', character 2"),
        (("b", "a"), "a b", r"token 1, 'b'.*'a b', character 0"),
        (("a",), "a b", r"no token is left for 'b', character 2"),
        (("a", "b"), "a", r"token 2, 'b'.*end of the text"),
        (("a", "\u200c"), "a b", r"token 2, '\\u200c', has no visible character"),
        (("de", "el"), "del", r"token 2, 'el'.*'l', character 2"),
    ],
)
def test_tokens_that_do_not_make_the_text_are_rejected(
    tokens: tuple[str, ...], text: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        locate(tokens, text)


def test_combined_characters_have_an_inside() -> None:
    text = "e\u0301 \u0301x👩\u200d🚀"
    inside = [offset for offset in range(len(text) + 1) if splits_combination(text, offset)]
    # Before the acute on 'e'; not before the one after a space; on both sides of the joiner.
    assert inside == [1, 6, 7]


def test_classes_of_characters() -> None:
    assert all(map(is_unspaced, "東々〇ひカーｶกລកက"))
    assert not any(map(is_unspaced, "a1한。、・１๑"))
    assert all(map(is_extender, "\u0301\u094d\u200d\u200c\u200e\ufeff\ufe0f"))
    assert is_blank("\u200b") and not is_extender("\u200b")
