"""Spelling noise: one variation at one place."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from harness_vyakarana.code_switch import respell, spelling_variants


@pytest.mark.parametrize(
    ("word", "others"),
    [
        ("nahin", {"naahin", "naheen", "nahi"}),
        ("phir", {"pir", "fir", "pheer"}),
        ("zyada", {"zyaada", "jyada", "zada"}),
        ("vetri", {"wetri", "vetree"}),
        ("baat", {"bat"}),
        ("k", set()),
        (".", set()),
        ("12", set()),
    ],
)
def test_variants(word: str, others: set[str]) -> None:
    assert set(spelling_variants(word)) == others


def test_all_variants_are_alike_likely() -> None:
    picked = [respell("nahin", place / 999) for place in range(999)]
    assert {word: picked.count(word) for word in spelling_variants("nahin")} == dict.fromkeys(
        spelling_variants("nahin"), 333
    )


@given(st.text(), st.floats(0, 1, exclude_max=True))
def test_any_word_is_respelt_without_vanishing(word: str, share: float) -> None:
    other = respell(word, share)
    assert bool(other) == bool(word)
    assert (other == word) == (not spelling_variants(word))
