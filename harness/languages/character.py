"""Characters as raw text needs them: what joins the character before it, and scripts written without spaces."""

from __future__ import annotations

import unicodedata
from functools import cache

ZERO_WIDTH_JOINER = "\u200d"
_ZERO_WIDTH_SPACE = "\u200b"
_UNSPACED_NAMES = (
    "CJK ",
    "IDEOGRAPHIC ",
    "HIRAGANA ",
    "KATAKANA",  # also KATAKANA-HIRAGANA PROLONGED SOUND MARK
    "HALFWIDTH KATAKANA",
    "THAI ",
    "LAO ",
    "KHMER ",
    "MYANMAR ",
)
"""How the Unicode names of the characters begin whose scripts put no space between words."""


@cache
def is_blank(character: str) -> bool:
    """Return whether a character separates words and shows nothing: white space or U+200B."""
    return character.isspace() or character == _ZERO_WIDTH_SPACE


@cache
def is_extender(character: str) -> bool:
    """Return whether a character belongs to the one before it: marks (M) and format characters (Cf) but U+200B.

    These are the classes Extend, ZWJ and Format that rule WB4 of Unicode Standard Annex 29 attaches.
    """
    category = unicodedata.category(character)
    return category[0] == "M" or (category == "Cf" and character != _ZERO_WIDTH_SPACE)


@cache
def is_unspaced(character: str) -> bool:
    """Return whether a character is a letter of a script whose words no space separates.

    Han, Hiragana, Katakana, Thai, Lao, Khmer and Myanmar; digits and punctuation of these scripts are not letters.
    """
    has_unspaced_name = unicodedata.name(character, "").startswith(_UNSPACED_NAMES)
    return has_unspaced_name and (unicodedata.category(character)[0] == "L" or character == "〇")


@cache
def is_wordlike(character: str) -> bool:
    """Return whether a character is a letter (L) or a number (N)."""
    return unicodedata.category(character)[0] in "LN"


def splits_combination(text: str, offset: int) -> bool:
    """Return whether an offset lies inside a combined character: before a mark on a base, or next to a joiner.

    A mark that follows white space or begins the text has no base, so that nothing is split before it.
    """
    if not 0 < offset < len(text) or is_blank(text[offset - 1]):
        return False
    before, after = text[offset - 1], text[offset]
    return unicodedata.category(after)[0] == "M" or ZERO_WIDTH_JOINER in {before, after}
