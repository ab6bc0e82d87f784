"""The part of a written text that a user's regular expression finds, in bounded time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any

LENGTHS = (4000, 2000, 1000, 500)
"""How many characters of a text are searched: the most that keep the search short."""
MOST_STEPS = 3e8
"""A bound on the steps of one search in the worst text; the true number is a fraction of it."""
REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})


class AnswerRegex:
    """A compiled expression, and how many characters at the end of a text it searches."""

    def __init__(self, pattern: re.Pattern[str], length: int) -> None:
        self._pattern = pattern
        self.length = length

    def find(self, text: str) -> str | None:
        """Return the first group of the last match, or the whole match without groups; None without a match."""
        matches = list(self._pattern.finditer(text[-self.length :]))
        if not matches:
            return None
        last = matches[-1]
        return next((group for group in last.groups() if group is not None), last.group())


@lru_cache(maxsize=64)
def answer_regex(pattern: str) -> AnswerRegex:
    """Return a compiled expression; raises `ValueError` for one that is not valid, or could take very long.

    The number of ways in which an expression can match is bounded from its parts, because Python's engine tries them
    all before it gives up: repeats within repeats, such as ``(a+)+``, have too many.
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"it is not a regular expression: {error}") from error
    parsed = import_module("re._parser").parse(pattern)
    for length in LENGTHS:
        if length * _ways(parsed, length) <= MOST_STEPS:
            return AnswerRegex(compiled, length)
    raise ValueError(
        "it could take very long on some texts: use no repeat within a repeat, and at most two of '*' and '+'"
    )


def _ways(parts: Iterable[Any], length: int) -> float:
    """Return a bound on the ways in which parts can match within so many characters."""
    ways = 1.0
    for operation, argument in parts:
        name = str(operation)
        if name in REPEATS:
            least, most, inner = argument
            most = min(int(most), length)
            each = _ways(inner, length)
            ways *= max(most - int(least) + 1, 1) * (each**most if each == 1 or most < 20 else float("inf"))
        elif name == "BRANCH":
            ways *= sum(_ways(branch, length) for branch in argument[1])
        elif name == "GROUPREF_EXISTS":
            ways *= sum(_ways(branch or (), length) for branch in argument[1:])
        elif name == "ATOMIC_GROUP":
            ways *= _ways(argument, length)
        elif name in {"SUBPATTERN", "ASSERT", "ASSERT_NOT"}:
            ways *= _ways(argument[-1], length)
    return ways
