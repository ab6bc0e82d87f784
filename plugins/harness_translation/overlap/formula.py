"""Attention overlap: how many of the words that are important to a model are important in the translation too.

Ahuja et al. (EACL 2024), section 5, as their released script computes it: the important words of a sentence have a
score of at least the mean of that sentence; an English word is a hit if the target word that it is linked to is
important too; the overlap of a sentence is the share of hits among its important English words, unlinked ones
included. The overlap of one item is the *sum* over premise and hypothesis, from 0 to 2, as in Table 3; `mean` is half
of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from harness import DataError
from harness.data import Link
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


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapRule:
    """The choices that the paper leaves open; the defaults are those of the authors' script."""

    importance: Literal[">=", ">"] = ">="
    """Whether a score equal to the mean is important; the paper says "above"."""
    link: Literal["first", "any"] = "first"
    """Whether only a word's first remaining link counts, or any of them."""
    denominator: Literal["important", "aligned"] = "important"
    """The words that hits are a share of: all important English words, or those with a link."""
    min_probability: float = 0.5
    """Links with a higher probability are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOverlap:
    """The overlap of one item, by sentence (premise, hypothesis); None if a sentence has no share."""

    sentences: tuple[float | None, ...]
    words: int = 0
    """The number of words in the English sentences."""
    linked: int = 0
    """Those of them with a kept link."""

    @property
    def defined(self) -> bool:
        """Return whether every sentence has a share."""
        return None not in self.sentences

    @property
    def sum(self) -> float:
        """Return the authors' number, in [0, number of sentences]; NaN if it is not defined."""
        return math.fsum(math.nan if value is None else value for value in self.sentences)

    @property
    def mean(self) -> float:
        """Return the mean over the sentences, in [0, 1]."""
        return self.sum / len(self.sentences)


def important_words(scores: Sequence[float], rule: OverlapRule) -> frozenset[int]:
    """Return the numbers of the words whose score is at least, or above, the mean of their sentence.

    A score within rounding of the mean equals it.
    """
    if not scores:
        return frozenset()
    mean = math.fsum(scores) / len(scores)
    ties = rule.importance == ">="
    return frozenset(
        number
        for number, score in enumerate(scores)
        if (ties if math.isclose(score, mean, rel_tol=1e-9, abs_tol=1e-12) else score > mean)
    )


def sentence_overlap(
    source: Sequence[float], target: Sequence[float], links: Sequence[Link], rule: OverlapRule
) -> float | None:
    """Return the share of important source words that are linked to an important target word.

    None if no word is important (or, by the rule, aligned).

    Args:
        source: Scores of the words of the English sentence.
        target: Scores of the words of the other sentence.
        links: The links between them, in the aligner's order.
        rule: The choices of the measure.
    """
    linked: dict[int, list[int]] = {}
    for link in links:
        if link.probability > rule.min_probability:
            linked.setdefault(link.source, []).append(link.target)
    important, reached = important_words(source, rule), important_words(target, rule)
    counted = [word for word in sorted(important) if rule.denominator == "important" or word in linked]
    if not counted:
        return None
    partners_by_word = {word: linked.get(word, [])[: 1 if rule.link == "first" else None] for word in counted}
    hits = sum(any(partner in reached for partner in partners) for partners in partners_by_word.values())
    return hits / len(counted)


def item_overlap(
    sentences: Sequence[tuple[Sequence[float], Sequence[float], Sequence[Link]]], rule: OverlapRule
) -> ItemOverlap:
    """Return the overlap of an item: one triple of source scores, target scores and links per sentence."""
    linked = (
        {link.source for link in links if link.probability > rule.min_probability}
        for _, _, links in sentences
    )
    return ItemOverlap(
        sentences=tuple(sentence_overlap(*sentence, rule) for sentence in sentences),
        words=sum(len(source) for source, _, _ in sentences),
        linked=sum(map(len, linked)),
    )
