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

from harness.features import FeatureContext, Items
from harness.segmentation import code_points

__all__ = ["SCRIPTS", "item_script", "item_texts", "latin_side", "script_counts", "text_scripts"]

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
"""Scripts that stand together in one writing system."""


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


def text_scripts(texts: Sequence[str]) -> list[str | None]:
    """Return the script of most letters of every text; of equally many the one that `SCRIPTS` has first.

    Japanese (``Jpan``) where kana are a tenth of the letters or more, Han and kana being written together; None for a
    text without letters.
    """
    counts = script_counts(texts)
    total = counts.sum(axis=1)
    kana = counts[:, [SCRIPTS.index("Hira"), SCRIPTS.index("Kana")]].sum(axis=1)
    han = counts[:, SCRIPTS.index("Hani")]
    japanese = (kana * 10 >= total) & (kana > 0) & (2 * (kana + han) > total)
    found = []
    for row, size, mixed in zip(
        counts.argmax(axis=1).tolist(), total.tolist(), japanese.tolist(), strict=True
    ):
        code = SCRIPTS[row]
        found.append("Jpan" if mixed else _OF_LANGUAGES.get(code, code) if size else None)
    return found


def item_texts(items: Items) -> list[list[str]]:
    """Return the texts that the items are of, one list a side: premise and hypothesis; question and context."""
    if items.kind == "token_tagging":
        return [[" ".join(fields.get("tokens") or ()) for fields in items.fields]]
    names = items.input_names if items.kind == "sequence_classification" else ()
    if not names:
        names = ("question", "context", "query", "text") if items.kind != "multiple_choice" else ("context",)
    found = [items.texts(name) for name in names]
    return [texts for texts in found if texts is not None]


def _sides(items: Items) -> list[list[str | None]]:
    sides: list[list[str | None]] = items.once(
        "scripts", lambda: [_distinct(texts) for texts in item_texts(items)]
    )
    return sides


def _distinct(texts: Sequence[str]) -> list[str | None]:
    every = list(dict.fromkeys(texts))
    found = dict(zip(every, text_scripts(every), strict=True))
    return [found[text] for text in texts]


def item_script(items: Items, context: FeatureContext) -> list[str | None] | None:
    """Return the scripts of the texts of every item: ``Deva``, or ``Deva+Latn`` where its sides differ."""
    sides = _sides(items)
    if not sides:
        return None
    rows = (sorted({code for code in row if code is not None}) for row in zip(*sides, strict=True))
    return ["+".join(row) or None for row in rows]


def latin_side(items: Items, context: FeatureContext) -> list[str] | None:
    """Return ``yes`` where one text of an item has letters and all are Latin, though its language is not written so.

    None for languages of Latin script, and for kinds whose items are no pair of texts.
    """
    if items.language.script in {"Latn", ""} or items.kind != "sequence_classification":
        return None
    latin = np.zeros(len(items), dtype=np.bool_)
    for texts in item_texts(items):
        counts = script_counts(texts)
        total = counts.sum(axis=1)
        latin |= (total > 0) & (counts[:, SCRIPTS.index("Latn")] == total)
    return ["yes" if own else "no" for own in latin.tolist()]
