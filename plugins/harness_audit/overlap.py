"""Items that are in two splits: equal texts, and texts of which most of the wording is equal.

Texts are compared case-folded in NFKC, letters and digits alone. Near duplicates share four fifths of their shingles
(runs of three tokens, Jaccard; Broder, 1997), or differ in one token; those that are compared at all share one of their
four smallest hashes, which texts with one other token always do, since it changes three shingles.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any
from zlib import crc32

NEAR = 0.8
WIDTH = 3
SKETCH = 4
LEAST_TOKENS = 8
"""Tokens of the shortest text for which a near duplicate is looked for: shorter ones are alike by chance."""
MOST_COMPARED = 64
"""Texts with the same hash that are compared: a hash that more share is that of a formula."""
SHOWN = 60
"""Characters of the text that a finding shows."""
# Where writing has no spaces, every character is a token.
_TOKEN = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """How many texts of one split are also in another."""

    exact: int
    near: int
    of: int
    example: tuple[str, str] | None
    """Ids of the first pair: in this split, in the other."""
    text: str = ""
    """The beginning of that item's text in this split."""


def item_text(example: Any) -> str:
    """Return all text of an item that a model reads, without labels; empty for records without text."""
    tokens = getattr(example, "tokens", ())
    if tokens:
        # Some files also have the raw text, others not.
        return " ".join(tokens)
    if hasattr(example, "inputs") and example.inputs:
        texts = [*example.inputs.values(), *getattr(example, "choices", ())]
    else:
        names = ("question", "context", "query", "passage", "text", "before", "right", "after", "source")
        texts = [value for name in names if isinstance(value := getattr(example, name, None), str)]
        texts += getattr(example, "choices", ())
    return " ".join(texts)


def text_tokens(text: str) -> list[str]:
    """Return the tokens by which texts are compared: words without case; characters in scripts without spaces."""
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


def _shingles(tokens: Sequence[str]) -> frozenset[int]:
    runs = (" ".join(tokens[start : start + WIDTH]) for start in range(len(tokens) - WIDTH + 1))
    return frozenset(crc32(run.encode("utf-8", "surrogatepass")) for run in runs)


def _one_changed(tokens: Sequence[str], candidate: Sequence[str]) -> bool:
    if len(tokens) != len(candidate):
        return False
    return sum(first != second for first, second in zip(tokens, candidate, strict=True)) == 1


class TextIndex:
    """The texts of one split, to be looked up by those of others."""

    def __init__(self, examples: Iterable[Any]) -> None:
        self._exact: dict[str, str] = {}
        self._sketches: dict[int, list[int]] = {}
        self._shingles: list[frozenset[int]] = []
        self._tokens: list[list[str]] = []
        self._ids: list[str] = []
        for example in examples:
            tokens = text_tokens(item_text(example))
            if not tokens or " ".join(tokens) in self._exact:
                continue
            self._exact[" ".join(tokens)] = example.id
            if len(tokens) < LEAST_TOKENS:
                continue
            shingles = _shingles(tokens)
            for value in sorted(shingles)[:SKETCH]:
                self._sketches.setdefault(value, []).append(len(self._ids))
            self._shingles.append(shingles)
            self._tokens.append(tokens)
            self._ids.append(example.id)

    def overlap(self, examples: Iterable[Any]) -> Overlap:
        """Return how many of the items stand here, each counted once."""
        exact = near = size = 0
        first: tuple[str, str] | None = None
        text = ""
        for example in examples:
            size += 1
            tokens = text_tokens(item_text(example))
            duplicate = self._exact.get(" ".join(tokens)) if tokens else None
            if duplicate is not None:
                exact += 1
            elif len(tokens) >= LEAST_TOKENS and (duplicate := self._near(tokens)) is not None:
                near += 1
            if duplicate is not None and first is None:
                first = (example.id, duplicate)
                text = shorten(item_text(example), SHOWN, placeholder=" ...") or item_text(example)[:SHOWN]
        return Overlap(exact=exact, near=near, of=size, example=first, text=text)

    def _near(self, tokens: Sequence[str]) -> str | None:
        shingles = _shingles(tokens)
        for value in sorted(shingles)[:SKETCH]:
            for row in self._sketches.get(value, ())[:MOST_COMPARED]:
                candidate = self._shingles[row]
                alike = len(shingles & candidate) >= NEAR * len(shingles | candidate)
                if alike or _one_changed(tokens, self._tokens[row]):
                    return self._ids[row]
        return None
