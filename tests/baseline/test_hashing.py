from __future__ import annotations

import unicodedata

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness_baseline.hashing import combine, hash_ngrams, hash_text, mix, normalise, uniform

TEXTS = st.lists(st.text(max_size=12), max_size=5)


def test_hashes_are_the_same_in_every_process() -> None:
    assert hash_text("añb", 1) == 584044005187562864
    # The first outputs of SplitMix64 for the seeds 0 and 1.
    assert mix(np.array([0, 1], dtype=np.uint64)).tolist() == [16294208416658607535, 10451216379200822465]


def test_parts_are_kept_apart() -> None:
    assert hash_text("ab", "c") != hash_text("a", "bc")


def test_pairs_are_ordered() -> None:
    one, other = np.array([3], dtype=np.uint64), np.array([5], dtype=np.uint64)
    assert combine(one, other) != combine(other, one)


@given(TEXTS)
def test_ngrams_are_the_windows_of_each_text(texts: list[str]) -> None:
    grams = hash_ngrams(texts, (1, 3))
    found = sorted(zip(grams.rows.tolist(), grams.lengths.tolist(), strict=True))
    wanted = sorted(
        (row, length)
        for row, text in enumerate(texts)
        for length in (1, 3)
        for _ in range(len(text) - length + 1)
    )
    assert found == wanted


@given(TEXTS)
def test_equal_windows_have_equal_hashes_and_others_do_not(texts: list[str]) -> None:
    grams = hash_ngrams(texts, (2,))
    windows = [text[start : start + 2] for text in texts for start in range(len(text) - 1)]
    assert len(set(windows)) == len(set(zip(windows, grams.values.tolist(), strict=True)))
    assert len(set(windows)) == len(set(grams.values.tolist()))


@given(st.text())
def test_composed_and_decomposed_text_are_one(text: str) -> None:
    assert normalise(unicodedata.normalize("NFD", text)) == normalise(unicodedata.normalize("NFC", text))


def test_uniform_numbers_are_uniform() -> None:
    drawn = uniform(combine(np.full(20000, 7, dtype=np.uint64), np.arange(20000, dtype=np.uint64)))
    assert 0 <= drawn.min() <= drawn.max() < 1
    counts, _ = np.histogram(drawn, bins=10, range=(0, 1))
    assert (np.abs(counts - 2000) < 200).all()
