"""Tamil in Latin letters, as people write it in chats: voiced and voiceless stops are distinguished by their place.

Tamil writes one letter for the stops of a place of articulation. A stop is voiceless at the beginning of a word,
doubled and next to another stop, and voiced after a nasal and between vowels (Keane 2004, Tamil, Journal of the
International Phonetic Association 34); c is s between vowels and at the beginning, ch when doubled, j after its nasal.
"""

from __future__ import annotations

import re
import unicodedata

LETTERS = re.compile("[\u200c\u200d]*[ஂஃஅ-ௐௗ][ஂஃஅ-ௐௗ\u200c\u200d]*")
"""A run of letters and signs; joiners count only next to them."""

NUMERALS: dict[int, int | str] = {
    **{ord("௦") + digit: str(digit) for digit in range(10)},
    **{ord("௰"): "10", ord("௱"): "100", ord("௲"): "1000"},
}

_PULLI = "்"
_VOWELS = {
    **dict(zip("அஆஇஈஉஊஎஏஐஒஓஔ", "a aa i ii u uu e e ai o o au".split(), strict=True)),
    "ௐ": "om",
}
_SIGNS = {
    **dict(zip("ாிீுூெேைொோௌௗ", "aa i ii u uu e e ai o o au au".split(), strict=True)),
    _PULLI: "",
}
_STOPS = {"க": ("k", "g"), "ச": ("ch", "s"), "ட": ("t", "d"), "த": ("th", "dh"), "ப": ("p", "b")}
"""Voiceless and voiced."""
_OTHERS = {
    **dict(zip("ஙஞணநனம", "n gn n n n m".split(), strict=True)),
    **dict(zip("யரறலளழவ", "y r r l l zh v".split(), strict=True)),
    **dict(zip("ஜஶஷஸஹஃ", "j sh sh s h h".split(), strict=True)),
}
_NASALS = frozenset("ஙஞணநனம")
_HARD = frozenset("கசடதபற")
_HISSES = frozenset("ஶஷஸ")
_AYTHAM = "ஃ"
_BEFORE = {("ற", "ற"): "t", ("ஞ", "ச"): "n", ("ஞ", "ஞ"): "", (_AYTHAM, "ப"): "", (_AYTHAM, "ஜ"): ""}
"""Letters with another spelling before some letters: *vetri*, *manjal*, *fan*."""
_AFTER = {("ற", "ன"): "dr", ("ஜ", _AYTHAM): "z"}
"""Letters with another spelling after some letters: *nandri*."""

_WORDS = {
    **{"தமிழ்": "tamil", "தமிழ்நாடு": "tamilnadu", "தமிழக": "tamilaga", "தமிழகம்": "tamilagam"},
    **{"சென்னை": "chennai", "இந்தியா": "india", "டெல்லி": "delhi", "கோவை": "kovai", "ஸ்ரீ": "sri"},
    **{"இலங்கை": "ilankai", "பிரதமர்": "pradhamar", "சோழ": "chozha", "சேர": "chera"},
}
"""Words whose customary spelling is not what the rules say: names, and words from Sanskrit."""


def romanize(letters: str) -> str:
    """Return an unbroken run of Tamil letters and signs in Latin letters; empty where it has no sound."""
    letters = unicodedata.normalize("NFC", letters.replace("\u200c", "").replace("\u200d", ""))
    spelling = _WORDS.get(letters)
    if spelling is not None:
        return spelling
    consonants, vowels = _parse(letters)
    last = len(consonants) - 1
    spelt: list[str] = []
    for index, (letter, vowel) in enumerate(zip(consonants, vowels, strict=True)):
        before = consonants[index - 1] if index and not vowels[index - 1] else ""
        after = consonants[index + 1] if index < last and not vowel else ""
        if letter:
            spelt.append(_consonant(letter, before, after, initial=index == 0, closes=not vowel))
            if (
                letter == "ய"
                and not vowel
                and after != "ய"
                and index
                and vowels[index - 1] not in ("a", "i", "ii")
            ):
                spelt[-1] = "i"
        if vowel:
            spelt.append(_vowel(vowel, first=index == 0, final=index == last))
    return "".join(spelt)


def _parse(letters: str) -> tuple[list[str], list[str]]:
    """Return a consonant letter and a vowel sound for every letter; either may be empty."""
    consonants: list[str] = []
    vowels: list[str] = []
    for letter in letters:
        if letter in _STOPS or letter in _OTHERS:
            consonants.append(letter)
            vowels.append("" if letter == _AYTHAM else "a")
        elif (vowel := _VOWELS.get(letter)) is not None:
            consonants.append("")
            vowels.append(vowel)
        elif (vowel := _SIGNS.get(letter)) is not None:
            if consonants and consonants[-1] not in ("", _AYTHAM):
                vowels[-1] = vowel
            elif vowel:
                consonants.append("")
                vowels.append(vowel)
        elif letter == "ஂ":
            consonants.append("ம")
            vowels.append("")
    return consonants, vowels


def _consonant(letter: str, before: str, after: str, *, initial: bool, closes: bool) -> str:
    """Return a consonant's spelling, given the bare consonants next to it (empty if there is none)."""
    if letter in _STOPS:
        return _stop(letter, before, after, initial=initial, closes=closes)
    spelt = _BEFORE.get((letter, after), _AFTER.get((letter, before)))
    return _OTHERS[letter] if spelt is None else spelt


def _stop(letter: str, before: str, after: str, *, initial: bool, closes: bool) -> str:
    voiceless, voiced = _STOPS[letter]
    if letter == "ப" and before == _AYTHAM:
        return "f"
    if letter == after:
        # The first of two is spelt without its second letter: patthu, pacchai.
        return voiceless[0]
    if initial:
        return {"ச": "s", "ட": "d"}.get(letter, voiceless)
    if before in _HARD or before in _HISSES or closes:
        return voiceless
    if before in _NASALS:
        return "j" if letter == "ச" and before == "ஞ" else voiced
    return voiced


def _vowel(sound: str, *, first: bool, final: bool) -> str:
    """Return a vowel's spelling: length is written in the first syllable, where stress and contrast lie."""
    if sound == "aa":
        return "a" if final and not first else "aa"
    if sound in ("ii", "uu"):
        return {"ii": "ee", "uu": "oo"}[sound] if first else sound[0]
    return sound
