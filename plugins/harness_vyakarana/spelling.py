"""Spelling noise: variant spellings of a word in Latin letters."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["VARIATIONS", "respell", "variants"]

VARIATIONS: tuple[tuple[str, str], ...] = (
    *(("aa", "a"), ("(?<!a)a(?!a)(?=[a-z])", "aa"), ("ee", "i"), ("(?<![aeiou])i(?![aeiou])", "ee")),
    *(("oo", "u"), ("(?<![aeiou])u(?![aeiou])", "oo"), ("ai", "ay"), ("au", "ow")),
    *(("(?<=[bdgjkpt])h", ""), ("(?<=[aeiou])h(?![aeiou])", ""), ("(?<=[aeiou])n$", "")),
    *(("v", "w"), ("w", "v"), ("ph", "f"), ("f", "ph"), ("z", "j"), ("(?<!s)sh", "s"), ("ksh", "x")),
    *(("q", "k"), ("y(?=[aeo])", ""), (r"([bcdfgklmnprstvz])\1", r"\1")),
)
"""Pattern and replacement: doubled and undoubled vowels, a dropped h or nasal, interchangeable letters."""

_COMPILED = tuple((re.compile(pattern), replacement) for pattern, replacement in VARIATIONS)


@lru_cache(maxsize=1 << 16)
def variants(word: str) -> tuple[str, ...]:
    """Return the spellings with one variation at one place, in a fixed order, without the word itself."""
    found: dict[str, None] = {}
    for pattern, replacement in _COMPILED:
        for match in pattern.finditer(word):
            other = word[: match.start()] + match.expand(replacement) + word[match.end() :]
            if other and other != word:
                found[other] = None
    return tuple(found)


def respell(word: str, share: float) -> str:
    """Return the variant that a number in [0, 1) picks, all equally likely; the word itself if it has none."""
    others = variants(word)
    return others[int(share * len(others))] if others else word
