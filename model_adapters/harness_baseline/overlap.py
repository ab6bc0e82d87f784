"""How two texts overlap: common words and character n-grams, in buckets that languages share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from harness_baseline.hashing import normalise
from harness_baseline.word import is_punctuation, split_words

__all__ = ["content_words", "overlap_features", "share_bucket", "size_bucket"]

_STEPS = 8


def content_words(text: str) -> list[str]:
    """Return the case-folded words of the text without punctuation."""
    return [word.form for word in split_words(normalise(text)) if not is_punctuation(word.form)]


def share_bucket(part: float, whole: float) -> int:
    """Return 0 for none, `_STEPS` + 1 for all, 1 to `_STEPS` in between, and -1 for an empty whole."""
    if not whole:
        return -1
    if part <= 0:
        return 0
    return _STEPS + 1 if part >= whole else 1 + int(_STEPS * part / whole)


def size_bucket(count: int) -> int:
    """Return the number itself up to 3, then one bucket for each doubling."""
    return count if count < 4 else 2 + count.bit_length() - 1


def overlap_features(first: str, second: str) -> list[str]:
    """Return the names of the buckets that a pair of texts falls into; empty where the texts are empty."""
    left, right = content_words(first), content_words(second)
    shares = {
        "words of 2 in 1": _common(left, right),
        "words of 1 in 2": _common(right, left),
        "bigrams of 2 in 1": _common(_pairs(left), _pairs(right)),
        "trigrams of 2 in 1": _common(_characters(first), _characters(second)),
        "trigrams of 1 in 2": _common(_characters(second), _characters(first)),
        "numbers of 2 in 1": _common(_numbers(left), _numbers(right)),
    }
    buckets = {name: share_bucket(*share) for name, share in shares.items()}
    buckets["new words"] = size_bucket(sum((Counter(right) - Counter(left)).values()))
    buckets["missing words"] = size_bucket(sum((Counter(left) - Counter(right)).values()))
    buckets["length"] = share_bucket(len(right), 2 * len(left))
    buckets["same bag"] = int(sorted(left) == sorted(right))
    buckets["same order"] = int(left == right)
    names = [f"{name}={bucket}" for name, bucket in buckets.items()]
    crossed = [
        ("words of 2 in 1", "words of 1 in 2"),
        ("words of 2 in 1", "bigrams of 2 in 1"),
        ("trigrams of 2 in 1", "length"),
        ("new words", "missing words"),
    ]
    return names + [f"{one}&{other}={buckets[one]}&{buckets[other]}" for one, other in crossed]


def _common(inside: Sequence[str], parts: Sequence[str]) -> tuple[int, int]:
    """Return how many of the parts occur in `inside`, with repetition, and how many parts there are."""
    return sum((Counter(parts) & Counter(inside)).values()), len(parts)


def _pairs(words: Sequence[str]) -> list[str]:
    return [f"{one} {other}" for one, other in pairwise(words)]


def _characters(text: str) -> list[str]:
    folded = normalise(text)
    return [folded[start : start + 3] for start in range(len(folded) - 2)]


def _numbers(words: Sequence[str]) -> list[str]:
    return [word for word in words if any(character.isdigit() for character in word)]
