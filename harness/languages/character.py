"""Characters as raw text needs them: blanks, marks, scripts without spaces, and letters that mean the same.

`fold` makes a new text. Its offsets are its own: nothing that is found in it is ever cut out of the original.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Final

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
_ARABIC: Final = {
    "\u0627": "\u0671",
    "\u0643": "\u06a9",
    "\u064a": "\u0649\u06cc",
    "\u0647": "\u0629\u06c1\u06be\u06c3\u06d5",
}
"""Alef, kaf, yeh and heh, each with its variants in Arabic, Persian and Urdu."""
_VARIANTS: Final = {variant: letter for letter, variants in _ARABIC.items() for variant in variants} | {
    "\u0131": "i",
    "\u0640": "",
    "\u2019": "'",
    "\u02bb": "'",
    "\u02bc": "'",
}
"""Also dotless i, the Arabic line that lengthens words, and apostrophes."""
_ACCENT: Final = 10
"""Canonical combining classes from here on are accents, tones and points; below are vowel signs, nukta and virama."""
_ABOVE: Final = frozenset("\u0300\u0301\u0303")
_DOTTED: Final = frozenset({"tr", "az", "crh", "gag"})
_TURKIC_LOWER: Final = {"I\u0307": "i", "\u0130": "i", "I": "\u0131"}
_TURKIC_UPPER: Final = {"i": "\u0130", "\u0131": "I"}


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


def fold(text: str) -> str:
    """Return a text in NFC without accents, Arabic and Hebrew points, and characters that are not seen.

    Arabic letters of one sound (hamza on alef, alef maqsura, teh marbuta) and the Turkish i's become one letter.
    Case is kept, because a choice differs from an article by it. Vowel signs of the Indic scripts stay.
    """
    if text.isascii():
        return text
    plain = "".join(map(_plain, unicodedata.normalize("NFD", text)))
    return unicodedata.normalize("NFC", plain)


@cache
def _plain(character: str) -> str:
    if unicodedata.combining(character) >= _ACCENT or unicodedata.category(character) == "Cf":
        return ""
    return _VARIANTS.get(character, character)


def lower_first(text: str, language: str = "") -> str:
    """Return a text with a small first letter as a language writes it: Turkish, Dutch, Lithuanian."""
    first = first_letter(text, language)
    base, small = _base(language), first.lower()
    if base in _DOTTED:
        small = _TURKIC_LOWER.get(first, small)
    elif base == "lt" and len(marks := unicodedata.normalize("NFD", first)) > 1 and marks[1] in _ABOVE:
        # The dot of a Lithuanian i stays under its accent.
        small = marks[0].lower() + ("\u0307" if marks[0] in "IJ" else "") + marks[1:]
    return small + text[len(first) :]


def upper_first(text: str, language: str = "") -> str:
    """Return a text with a capital first letter as a language writes it."""
    first = first_letter(text, language)
    base, capital = _base(language), first.title()
    if base in _DOTTED:
        capital = _TURKIC_UPPER.get(first, capital)
    elif base == "nl" and len(first) == len("ij"):
        capital = first.upper()
    elif base == "lt":
        capital = unicodedata.normalize("NFC", first.replace("\u0307", "")).title()
    return capital + text[len(first) :]


def first_letter(text: str, language: str = "") -> str:
    """Return the first letter of a text with its marks; Dutch ``ij`` is one."""
    if _base(language) == "nl" and text[:2] in {"IJ", "ij"}:
        return text[:2]
    end = 1
    while end < len(text) and unicodedata.combining(text[end]):
        end += 1
    return text[:end]


def _base(language: str) -> str:
    return language.split("-", maxsplit=1)[0]
