"""Invented letter tables: how the made-up names of the synthetic files look in five scripts.

A name is a row of syllables, one of 16 consonants and one of 5 vowels. Every script spells every syllable
differently from all others, so that a name has one spelling in each script. The tables are no transliteration
standard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

__all__ = ["POOL_LANGUAGES", "SCRIPTS", "SYLLABLES", "Script"]

SYLLABLES: Final = 80
"""Number of syllables: 16 consonants times 5 vowels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One letter table, and how words and sentences are put together."""

    syllables: tuple[str, ...]
    space: str = " "
    """The separator of words."""
    name_space: str = " "
    """The separator of the two words of a name."""
    stop: str = "."

    def word(self, *numbers: int) -> str:
        """Return the word of some syllables, given by their numbers from 0."""
        return "".join([self.syllables[number] for number in numbers])

    def sentence(self, *words: str) -> str:
        """Return words as a sentence."""
        return self.space.join(words) + self.stop


def _spelt(consonants: str, vowels: str) -> tuple[str, ...]:
    signs = [sign.replace("-", "") for sign in vowels.split()]
    return tuple(consonant + sign for consonant in consonants.split() for sign in signs)


_KATAKANA: Final = (
    "バ ベ ビ ボ ブ ダ デ ヂ ド ヅ ファ フェ フィ フォ フ ガ ゲ ギ ゴ グ "
    "ハ ヘ ヒ ホ ヒュ カ ケ キ コ ク ラ レ リ ロ ル マ メ ミ モ ム "
    "ナ ネ ニ ノ ヌ パ ペ ピ ポ プ リャ リェ リィ リョ リュ サ セ シ ソ ス "
    "タ テ チ ト ツ ヴァ ヴェ ヴィ ヴォ ヴュ ザ ゼ ジ ゾ ズ ヤ イェ ユィ ヨ ユ"
)

SCRIPTS: Final[Mapping[str, Script]] = MappingProxyType(
    {
        "Arab": Script(syllables=_spelt("ب د ف غ ه ك ل م ن پ ر س ت ڤ ز ئ", "ا ے ي ۆ و")),
        "Cyrl": Script(syllables=_spelt("б д ф г х к л м н п р с т в з ж", "а е и о у")),
        "Jpan": Script(syllables=tuple(_KATAKANA.split()), space="", name_space="・", stop="。"),
        "Latn": Script(syllables=_spelt("b d f g h k l m n p r s t v z y", "a e i o u")),
        "Taml": Script(syllables=_spelt("ப த ழ ங ஹ க ல ம ன ற ர ச ட வ ஜ ய", "- ெ ி ொ ு")),
    }
)
"""Letter tables by ISO 15924 code."""

POOL_LANGUAGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{"ar": "Arab", "de": "Latn", "en": "Latn", "es": "Latn", "fa": "Arab", "ja": "Jpan"},
        **{"pl": "Latn", "ro": "Latn", "ta": "Taml", "tr": "Latn", "uk": "Cyrl"},
        **dict.fromkeys(["ur"], "Arab"),
        **dict.fromkeys(["bg", "kk", "ru"], "Cyrl"),
        **dict.fromkeys(
            "af az et eu fi fr ht hu id it jv lt ms nl pt qu sw tl vi wo yo".split(),
            "Latn",
        ),
    }
)
"""Language of a description -> its script: the 11 mention languages first, then XTREME-R's others in these scripts."""
