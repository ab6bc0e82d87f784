"""The words that attention and alignment share, with their places in the text.

Words are separated by spaces, as in the authors' script. In scripts that put no space between words (Chinese,
Japanese, Thai ...) they are the units of `harness.languages.segmentation`, which every word between spaces is cut into;
punctuation stays with the unit before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from harness import DataError
from harness.languages import is_unspaced, words as segmented
from harness.models import SegmentAttention

Splitting = Literal["auto", "space"]
Join = Literal["sum", "mean"]
_SPACED: Final = re.compile(r"\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word and its place in Unicode code points: ``text[start:end]``."""

    text: str
    start: int
    end: int


def split_words(text: str, how: Splitting = "auto") -> tuple[Word, ...]:
    """Return the words of a text in their order.

    Args:
        text: The sentence.
        how: ``auto`` cuts text without spaces into the units of `harness.languages.segmentation`; ``space`` splits
            at spaces only, and raises `DataError` for unspaced text.
    """
    words: list[Word] = []
    for match in _SPACED.finditer(text):
        word, start = match.group(), match.start()
        unspaced = sum(map(is_unspaced, word))
        if unspaced > 1 and how == "space":
            raise DataError(
                f"The text {text[:60]!r} has no spaces between words, so its words are unknown.",
                hint="Cut it into characters with --words auto.",
            )
        cuts = _cuts(word) if unspaced else [0]
        for first, last in zip(cuts, [*cuts[1:], len(word)], strict=True):
            words.append(Word(text=word[first:last], start=start + first, end=start + last))
    return tuple(words)


def _cuts(word: str) -> list[int]:
    """Return where the units of a word begin; other characters belong to the unit before them."""
    cuts, position = [], 0
    for unit in segmented([word])[0]:
        position = word.index(unit, position)
        cuts.append(position)
        position += len(unit)
    return [0, *cuts[1:]]


def word_scores(
    attention: SegmentAttention, text: str, words: Sequence[Word], join: Join = "sum"
) -> tuple[float, ...]:
    """Return one score per word: the sum of its pieces' scores, or their mean.

    Pieces are found by their characters. One that covers several words gives each a share by its number of characters;
    one that covers only spaces, or nothing, belongs to the word that follows, as a piece with nothing but the mark of
    a word's start does in the authors' script. A word without a piece has 0.

    Raises:
        DataError: If a piece lies outside of all words.
    """
    sums, weights = [0.0] * len(words), [0.0] * len(words)
    for start, end, score in zip(attention.starts, attention.ends, attention.scores, strict=True):
        for number, share in _shares(start, end, text, words).items():
            sums[number] += share * score
            weights[number] += share
    if join == "sum":
        return tuple(sums)
    return tuple(value / weight if weight else 0.0 for value, weight in zip(sums, weights, strict=True))


def _shares(start: int, end: int, text: str, words: Sequence[Word]) -> dict[int, float]:
    """Return the share of a piece that belongs to each of its words; shares sum to 1, or there is no word."""
    covered = {
        number: min(end, word.end) - max(start, word.start)
        for number, word in enumerate(words)
        if word.start < end and start < word.end
    }
    if covered:
        total = sum(covered.values())
        return {number: size / total for number, size in covered.items()}
    if text[start:end].strip():
        raise DataError(
            f"The piece {text[start:end]!r} of {text[:60]!r} belongs to none of its {len(words)} words."
        )
    after = next((number for number, word in enumerate(words) if word.start >= start), None)
    return {} if after is None else {after: 1.0}
