from __future__ import annotations

import unicodedata

import numpy as np
from hypothesis import given, strategies as st

from harness_baseline.guess import hash_text, mix
from harness_baseline.text import normalise


def test_hashes_are_the_same_in_every_process() -> None:
    assert hash_text("añb", 1) == 584044005187562864
    # The first outputs of SplitMix64 for the seeds 0 and 1.
    assert mix(np.array([0, 1], dtype=np.uint64)).tolist() == [16294208416658607535, 10451216379200822465]


def test_parts_are_kept_apart() -> None:
    assert hash_text("ab", "c") != hash_text("a", "bc")


@given(st.text())
def test_composed_and_decomposed_text_are_one(text: str) -> None:
    assert normalise(unicodedata.normalize("NFD", text)) == normalise(unicodedata.normalize("NFC", text))
