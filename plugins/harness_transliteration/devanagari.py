"""Devanagari in Latin letters, as people write Hindi, Marathi and Nepali in chats: no diacritics, no silent schwas.

A consonant letter carries an inherent vowel, the schwa, that is often not spoken. It is deleted at the end of a word,
and then, from right to left, between a vowel with one consonant before it and one consonant with a vowel behind it
(V C _ C V; Ohala 1983, Aspects of Hindi Phonology; Narasimhan, Sproat and Kiraz 2004, Schwa-deletion in Hindi
text-to-speech synthesis). The final schwa of a cluster that ends in y, v or r is kept, and that of -iy.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_RANGES = "ऀ-ॣॱ-ॿ\ua8e0-\ua8ff\u1cd0-\u1cff"
LETTERS = re.compile(f"[\u200c\u200d]*[{_RANGES}][{_RANGES}\u200c\u200d]*")
"""A run of letters and signs; joiners count only next to them."""

NUMERALS = str.maketrans("०१२३४५६७८९।॥॰", "0123456789...")
"""Digits, danda and the sign of abbreviation, which are not letters."""

_NUKTA = "़"
_VIRAMA = "्"
_CONSONANTS = {
    **dict(zip("कखगघङ", ("k", "kh", "g", "gh", "n"), strict=True)),
    **dict(zip("चछजझञ", ("ch", "chh", "j", "jh", "n"), strict=True)),
    **dict(zip("टठडढण", ("t", "th", "d", "dh", "n"), strict=True)),
    **dict(zip("तथदधन", ("t", "th", "d", "dh", "n"), strict=True)),
    **dict(zip("पफबभम", ("p", "ph", "b", "bh", "m"), strict=True)),
    **dict(zip("यरलवशषसहळ", ("y", "r", "l", "v", "sh", "sh", "s", "h", "l"), strict=True)),
    **dict(zip("ॸॹॺॻॼॾॿ", ("d", "zh", "y", "g", "j", "d", "b"), strict=True)),
}
_WITH_NUKTA = {"क": "q", "ख": "kh", "ग": "g", "ज": "z", "झ": "zh", "फ": "f", "ळ": "zh"}
_LETTERS = {
    **dict(zip("अआइईउऊऋएऐओऔ", ("a", "aa", "i", "ii", "u", "uu", "ri", "e", "ai", "o", "au"), strict=True)),
    **dict(zip("ऄऌऍऎऑऒॠॡॲॳॴॵॶॷ", "e li e e o o ri li a o o au u u".split(), strict=True)),
    "\ua8fe": "ai",
}
_SIGNS = {
    **dict(zip("ािीुूृेैोौ", ("aa", "i", "ii", "u", "uu", "ri", "e", "ai", "o", "au"), strict=True)),
    **dict(zip("ॄॅॆॉॊॢॣऺऻॎॏॕॖॗ", "ri e e o o li li o o e au e u u".split(), strict=True)),
    "\ua8ff": "ai",
}
_NASALS = frozenset("ऀँं\ua8f2\ua8f3")
_SYLLABLES = {"ॐ": "om", "\ua8fd": "om"}

_SCHWA, _VOWEL, _CONSONANT, _NASAL, _BREATH, _NONE = range(6)
_SOUNDS = {
    **{letter: (_CONSONANT, sound) for letter, sound in _CONSONANTS.items()},
    **{letter: (_VOWEL, sound) for letter, sound in (_LETTERS | _SYLLABLES).items()},
    **dict.fromkeys(_NASALS, (_NASAL, "n")),
    "ः": (_BREATH, "h"),
}
"""Kinds and sounds of all letters but the vowel signs."""

_LONG = {"aa": "a", "ii": "i", "uu": "u"}
_LONG_CLOSED = {"aa": "aa", "ii": "ee", "uu": "oo"}
_LABIALS = ("p", "b", "m", "f")
_DOUBLED = {("chh", "chh"): "", ("ch", "ch"): "c", ("ch", "chh"): ""}
_ASPIRATES = {"kh": "k", "gh": "g", "jh": "j", "th": "t", "dh": "d", "ph": "p", "bh": "b"}
_BEFORE_W = ("s", "sh", "d", "j", "g", "k")

_HINDI = {
    **{"में": "mein", "मे": "mein", "यह": "yeh", "वह": "woh", "वो": "wo", "माँ": "maa", "मां": "maa"},
    **{"वहाँ": "wahan", "वहां": "wahan", "वहीं": "wahin", "वाला": "wala", "वाले": "wale", "वाली": "wali"},
    **{"वालों": "walon", "सिंह": "singh", "छः": "chhah", "कृष्ण": "krishna", "शुक्ल": "shukla"},
    **{"विष्णु": "vishnu", "लोकसभा": "loksabha", "राज्यसभा": "rajyasabha", "विधानसभा": "vidhansabha"},
}
"""Words whose customary spelling is not what is spoken, or that are compounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterStyle:
    """Differences between the languages that are written in Devanagari."""

    deletes_schwas: bool = True
    keeps_after_clusters: bool = False
    """Whether the final schwa of every cluster is spoken: Marathi *varsha*, Nepali *garchha*; Hindi *varsh*."""
    hindi_words: bool = False


_STYLES = {
    **dict.fromkeys(("hi", "bho", "awa", "bra", "mai", "mag", "raj"), LetterStyle(hindi_words=True)),
    **dict.fromkeys(("mr", "kok", "ne"), LetterStyle(keeps_after_clusters=True)),
    "sa": LetterStyle(deletes_schwas=False),
    "pi": LetterStyle(deletes_schwas=False),
}

LANGUAGES = frozenset(_STYLES)
_PLAIN_STYLE = LetterStyle()


def style_of(language: str) -> LetterStyle:
    """Return the style of a language; an unknown language has that of Hindi, without Hindi's own words."""
    return _STYLES.get(language, _PLAIN_STYLE)


def romanize(letters: str, style: LetterStyle) -> str:
    """Return an unbroken run of Devanagari letters and signs in Latin letters; empty where it has no sound."""
    if style.hindi_words:
        spelling = _HINDI.get(letters) or _HINDI.get(unicodedata.normalize("NFC", letters))
        if spelling is not None:
            return spelling
    kinds, sounds = _parse(unicodedata.normalize("NFD", letters))
    if style.deletes_schwas:
        _delete_schwas(kinds, sounds, keep_clusters=style.keeps_after_clusters)
    return _spell(kinds, sounds)


def _parse(letters: str) -> tuple[list[int], list[str]]:
    """Return the kinds and sounds of a word, an inherent vowel after every bare consonant."""
    units: list[tuple[int, str]] = []
    bare, previous = False, ""
    for letter in letters:
        if letter in _SIGNS:
            units.append((_VOWEL, _SIGNS[letter]))
            bare = False
        elif letter in _SOUNDS:
            # The remaining signs have no sound: the avagraha, joiners, Vedic accents.
            if bare:
                units.append((_SCHWA, "a"))
            units.append(_SOUNDS[letter])
            bare, previous = letter in _CONSONANTS, letter
        elif letter == _VIRAMA:
            bare = False
        elif letter == _NUKTA and units and units[-1][0] == _CONSONANT:
            units[-1] = _CONSONANT, _WITH_NUKTA.get(previous, units[-1][1])
    if bare:
        units.append((_SCHWA, "a"))
    kinds, sounds = [kind for kind, _ in units], [sound for _, sound in units]
    if "j" in sounds:
        _join_gyan(kinds, sounds)
    return kinds, sounds


def _join_gyan(kinds: list[int], sounds: list[str]) -> None:
    """Spell j + n of the letter jna as it is spoken: *gyan*, *vigyan*."""
    for index in range(len(kinds) - 1):
        is_cluster = kinds[index] == kinds[index + 1] == _CONSONANT
        if is_cluster and sounds[index : index + 2] == ["j", "n"]:
            sounds[index : index + 2] = ["g", "y"]


def _delete_schwas(kinds: list[int], sounds: list[str], *, keep_clusters: bool) -> None:
    """Delete the schwas that are not spoken, the final one first, then from right to left."""
    last = len(kinds) - 1
    if last > 1 and kinds[last] == _SCHWA and min(kinds[:last]) <= _VOWEL:
        cluster = kinds[last - 2] == _CONSONANT
        glide = sounds[last - 1] in ("y", "v", "r")
        spoken = cluster and (glide or keep_clusters)
        if not spoken and not (sounds[last - 1] == "y" and sounds[last - 2] in ("i", "ii")):
            del kinds[last], sounds[last]
    for index in range(len(kinds) - 3, 1, -1):
        if (
            kinds[index] == _SCHWA
            and kinds[index - 1] == _CONSONANT
            and kinds[index - 2] <= _VOWEL
            and kinds[index + 1] == _CONSONANT
            and kinds[index + 2] <= _VOWEL
        ):
            if sounds[index - 1] == "h" and kinds[index - 2] == _SCHWA:
                # The schwa before an h that closes its syllable is fronted: kehna, pehle.
                sounds[index - 2] = "e"
            del kinds[index], sounds[index]


def _spell(kinds: list[int], sounds: list[str]) -> str:
    """Return the spelling: long vowels, nasals and clusters by their neighbours."""
    if not kinds:
        return ""
    syllables = kinds.count(_SCHWA) + kinds.count(_VOWEL)
    long = _LONG_CLOSED if syllables == 1 and kinds[-1] > _VOWEL else _LONG
    spelt: list[str] = []
    before, previous = _NONE, ""
    for kind, sound, after, following in zip(
        kinds, sounds, [*kinds[1:], _NONE], [*sounds[1:], ""], strict=True
    ):
        if kind <= _VOWEL:
            if sound == "e" and before <= _VOWEL and previous in ("a", "aa", "i", "ii"):
                # A glide is heard and written: gaye, liye.
                spelt.append("ye")
            else:
                spelt.append("aa" if sound == "aa" and before == _NONE else long.get(sound, sound))
        elif kind == _NASAL:
            spelt.append(_nasal(following if after == _CONSONANT else ""))
        elif kind == _BREATH:
            # Before a consonant it is not heard: dukh.
            spelt.append(sound if after == _NONE else "")
        elif after == _CONSONANT:
            same = _ASPIRATES.get(sound, sound) if following == sound else sound
            spelt.append(_DOUBLED.get((sound, following), same))
        elif sound == "v" and before == _CONSONANT and previous in _BEFORE_W:
            spelt.append("w")
        else:
            spelt.append(sound)
        before, previous = kind, sound
    return "".join(spelt)


def _nasal(consonant: str) -> str:
    """Return m before labials and n elsewhere; before an n it is not written twice: unhone."""
    if consonant == "n":
        return ""
    return "m" if consonant.startswith(_LABIALS) else "n"
