"""Offsets into texts, counted in Unicode code points."""

from __future__ import annotations

import unicodedata

__all__ = ["cuts_character"]


def cuts_character(text: str, offset: int) -> bool:
    """Return whether a cut at `offset` would separate a combining mark from its base character.

    Marks are the characters of the Unicode categories Mn, Mc and Me: accents, Arabic vowels, Indic vowel
    signs. Joiners do not count: a Persian word may end before a zero width non-joiner.
    """
    return 0 < offset < len(text) and unicodedata.category(text[offset]).startswith("M")
