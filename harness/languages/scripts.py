"""The script of a text: that of most of its letters, by ISO 15924 code.

Python's Unicode tables know no scripts. A letter's script is taken from how its Unicode name begins, which says it for
every letter of the scripts named here; letters of others are counted as ``Zyyy``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from harness.languages.segmentation import code_points

Integers = npt.NDArray[np.int64]
_NAMES: Final = {
    "LATIN": "Latn", "FULLWIDTH": "Latn", "GREEK": "Grek", "CYRILLIC": "Cyrl", "ARMENIAN": "Armn",
    "HEBREW": "Hebr", "ARABIC": "Arab", "DEVANAGARI": "Deva", "BENGALI": "Beng", "GURMUKHI": "Guru",
    "GUJARATI": "Gujr", "ORIYA": "Orya", "TAMIL": "Taml", "TELUGU": "Telu", "KANNADA": "Knda",
    "MALAYALAM": "Mlym", "SINHALA": "Sinh", "THAI": "Thai", "LAO": "Laoo", "TIBETAN": "Tibt",
    "MYANMAR": "Mymr", "GEORGIAN": "Geor", "HANGUL": "Hang", "HALFWIDTH HANGUL": "Hang", "ETHIOPIC": "Ethi",
    "KHMER": "Khmr", "CJK": "Hani", "IDEOGRAPHIC": "Hani", "HIRAGANA": "Hira", "KATAKANA": "Kana",
    "KATAKANA-HIRAGANA": "Kana", "HALFWIDTH KATAKANA": "Kana",
}  # fmt: skip
OTHER: Final = "Zyyy"
SCRIPTS: Final = tuple(dict.fromkeys([*_NAMES.values(), OTHER]))
_NO_LETTER: Final = len(SCRIPTS)
_UNKNOWN: Final = 255
BLOCK: Final = 200_000
_OF_LANGUAGES: Final = {"Hira": "Jpan", "Kana": "Jpan", "Hang": "Kore"}
"""Scripts that one writing system uses together."""
_SIGNS: Final = ("Hani", "Hira", "Kana", "Hang")


def script_counts(texts: Sequence[str]) -> Integers:
    """Return the letters of every text by script, in the order of `SCRIPTS`: shape (n, scripts)."""
    counts = np.zeros((len(texts), len(SCRIPTS) + 1), dtype=np.int64)
    start = 0
    while start < len(texts):
        end, size = start, 0
        while end < len(texts) and (size < BLOCK or end == start):
            size += len(texts[end])
            end += 1
        counts[start:end] = _counted(texts[start:end])
        start = end
    return counts[:, :_NO_LETTER]


def _counted(texts: Sequence[str]) -> Integers:
    points = code_points("".join(texts))
    table = _table()
    codes = table[points]
    unknown = np.unique(points[codes == _UNKNOWN])
    if len(unknown):
        table[unknown] = [_script_of(chr(point)) for point in unknown.tolist()]
        codes = table[points]
    width = len(SCRIPTS) + 1
    owners = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    return np.bincount(owners * width + codes, minlength=len(texts) * width).reshape(len(texts), width)


@cache
def _table() -> npt.NDArray[np.uint8]:
    """Return the script of every code point, filled as they are met."""
    return np.full(0x110000, _UNKNOWN, dtype=np.uint8)


def _script_of(character: str) -> int:
    if unicodedata.category(character)[0] != "L":
        return _NO_LETTER
    name = unicodedata.name(character, "").split(" ")
    code = _NAMES.get(" ".join(name[:2])) or _NAMES.get(name[0], OTHER)
    return SCRIPTS.index(code)


def text_scripts(texts: Sequence[str], *, sign: int = 1) -> list[str | None]:
    """Return the script of most letters of every text; of equally many the one that `SCRIPTS` has first.

    Japanese (``Jpan``) where kana are a tenth of the letters or more, Han and kana being written together; None for a
    text without letters. `sign` is how many letters a Han character, a kana and a Hangul syllable count for, each of
    which writes what takes several letters of an alphabet.
    """
    counts = script_counts(texts)
    counts[:, [SCRIPTS.index(code) for code in _SIGNS]] *= sign
    total = counts.sum(axis=1)
    kana = counts[:, [SCRIPTS.index("Hira"), SCRIPTS.index("Kana")]].sum(axis=1)
    han = counts[:, SCRIPTS.index("Hani")]
    japanese = (kana * 10 >= total) & (kana > 0) & (2 * (kana + han) > total)
    scripts = []
    for row, size, mixed in zip(
        counts.argmax(axis=1).tolist(), total.tolist(), japanese.tolist(), strict=True
    ):
        code = SCRIPTS[row]
        scripts.append("Jpan" if mixed else _OF_LANGUAGES.get(code, code) if size else None)
    return scripts
