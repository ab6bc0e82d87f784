"""Words and characters of many texts are counted text by text."""

from __future__ import annotations

from harness.languages.segmentation import character_counts, word_counts, words

TEXTS = ["ab cd", "e f g", "", "h", "नमस्ते दुनिया", "你好"]


def test_each_text_has_its_own_words() -> None:
    assert words(TEXTS) == [["ab", "cd"], ["e", "f", "g"], [], ["h"], ["नमस्ते", "दुनिया"], ["你", "好"]]
    assert word_counts(TEXTS).tolist() == [2, 3, 0, 1, 2, 2]
    assert character_counts(TEXTS[:4]).tolist() == [5, 5, 0, 1]
