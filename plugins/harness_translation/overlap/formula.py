"""Attention overlap: how many of the words that are important to a model are important in the translation too.

Ahuja et al. (EACL 2024), section 5, as their released script computes it: the important words of a sentence have a
score of at least the mean of that sentence; an English word is a hit if the target word that it is linked to is
important too; the overlap of a sentence is the share of hits among its important English words, unlinked ones
included. The overlap of one item is the *sum* over premise and hypothesis, from 0 to 2, as in Table 3; `mean` is half
of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.data import Link


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
