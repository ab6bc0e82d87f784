"""Offsets of pieces, checked against the text."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def piece_offsets(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the offsets of a text's pieces, repaired, without blanks at their ends; shape (pieces, 2), code points.

    What a tokenizer reports is checked: neighbouring pieces leave no visible character out. Byte-level tokenizers trim
    one character off every piece that begins with a space sign, also where their pre-tokenizer has removed the space
    (RobBERT): a word then loses its first letter, and a word of one letter has no piece. A character without a piece
    belongs to the piece that follows without a blank, else to the piece before it; one between blanks to none. An
    empty piece right after a visible character is that character's, as an inserted space sign is its word's.
    """
    covered = bytearray(len(text))
    for start, end in offsets:
        covered[start:end] = b"\1" * (end - start)
    repaired = []
    for start, end in offsets:
        first = start - 1 if start == end and start and _is_visible(text[start - 1]) else start
        while first and not covered[first - 1] and not text[first - 1].isspace():
            first -= 1
        while first < start and not _is_visible(text[first]):
            first += 1
        covered[first:start] = b"\1" * (start - first)
        repaired.append((first, end))
    return [_without_blanks(text, *_extended(text, covered, *pair)) for pair in repaired]


def _extended(text: str, covered: bytearray, start: int, end: int) -> tuple[int, int]:
    """Return a piece with the visible characters after it that no piece has."""
    last = end
    while start < end and last < len(text) and not covered[last] and not text[last].isspace():
        last += 1
    while last > end and not _is_visible(text[last - 1]):
        last -= 1
    return start, last


def _is_visible(character: str) -> bool:
    """Return whether a character is a letter, number, punctuation or symbol: no space, mark or format character."""
    return not character.isspace() and unicodedata.category(character)[0] in "LNPS"


def _without_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a piece without the spaces that sentencepiece counts to it."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
