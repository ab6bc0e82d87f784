"""Words that are not written in the script of their language."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from harness.languages.scripts import SCRIPTS, script_counts
from harness.languages.table import known_languages

__all__ = ["WordScripts", "is_abbreviation", "language_scripts"]

_WRITING: Final = {
    "Jpan": frozenset({"Hani", "Hira", "Kana"}),
    "Kore": frozenset({"Hang"}),
    "Hans": frozenset({"Hani"}),
    "Hant": frozenset({"Hani"}),
}
"""The scripts of writing systems that have several, or a name of their own."""
_WORD: Final = re.compile(r"[^\s\d.,;:!?¿¡()\[\]{}/\\\"'«»„“”‘’،؛؟。、।৷·—–-]+")
_LATIN: Final = re.compile(r"[A-Za-z]+")
_ALIKE: Final = frozenset({"Cyrl", "Grek"})
"""Scripts with letters that look Latin, so that one that slipped into a word is not seen."""
LONGEST_ABBREVIATION: Final = 4


def language_scripts(language: str, texts: Iterable[str] = ()) -> frozenset[str]:
    """Return the ISO 15924 codes of the scripts of a language.

    They come from the language table; for a language that is not in it, from most letters of the texts. Empty where
    neither is known.
    """
    table = known_languages()
    if language in table:
        script = table.get(language).script
        return _WRITING.get(script, frozenset({script}))
    counts = script_counts([" ".join(texts)])[0]
    return frozenset({SCRIPTS[int(counts.argmax())]}) if counts.any() else frozenset()


def is_abbreviation(word: str) -> bool:
    """Return whether a word is an abbreviation in Latin capitals, ``TV`` or ``SUV``.

    Languages of all scripts write these so in running text: they are no sign of a text that was not translated.
    """
    return word.isascii() and word.isupper() and 2 <= len(word) <= LONGEST_ABBREVIATION


class WordScripts:
    """The scripts of the words of many texts; each word is checked once."""

    def __init__(self) -> None:
        self._known: dict[str, frozenset[str]] = {}

    def learn(self, texts: Iterable[str]) -> None:
        """Look at all words of the texts at once, which is faster than one by one."""
        new = list({word for text in texts for word in _WORD.findall(text)} - self._known.keys())
        for word, row in zip(new, script_counts(new), strict=True) if new else ():
            found = {SCRIPTS[index] for index in row.nonzero()[0].tolist()}
            self._known[word] = frozenset(found)

    def foreign(self, text: str, scripts: frozenset[str]) -> list[str]:
        """Return the words that are wholly in other scripts, abbreviations in Latin capitals aside.

        Particles join Latin words in many languages (Korean, Thai): there the Latin run is the word.
        """
        found = []
        for word, own in self._words(text):
            if own and not own & scripts:
                found.append(word)
            elif own - scripts == {"Latn"} and not own & _ALIKE:
                found += _LATIN.findall(word)
        return [word for word in found if not is_abbreviation(word)]

    def mixed(self, text: str, scripts: frozenset[str]) -> list[str]:
        """Return the words with letters of two scripts that no spelling joins, such as a Latin a in a Cyrillic word."""
        return [
            word
            for word, own in self._words(text)
            if own & scripts and own - scripts and (own - scripts != {"Latn"} or own & _ALIKE)
        ]

    def _words(self, text: str) -> list[tuple[str, frozenset[str]]]:
        words = _WORD.findall(text)
        if any(word not in self._known for word in words):
            self.learn([text])
        return [(word, self._known[word]) for word in words]
