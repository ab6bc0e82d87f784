"""The code by which a library knows a language of the harness: libraries have no codes for scripts and countries."""

from __future__ import annotations

from collections.abc import Container

from harness.languages.table import known_languages

TEXT_SCRIPTS = {
    "Hans": "Hani", "Hant": "Hani", "Hang": "Kore", "Hira": "Jpan", "Kana": "Jpan", "Hrkt": "Jpan",
}  # fmt: skip
"""ISO 15924 code of a language or code -> that of texts, which has one name for scripts that are used together."""
_CHINESE = frozenset("cdo cjy cmn cnp cpx csp czh czo gan hak hsn lzh mnp nan wuu yue zh".split())
"""Members of the macrolanguage Chinese (ISO 639-3)."""
_UNSPACED = frozenset(
    "Ahom Bali Bugi Cham Hani Java Jpan Kawi Khmr Lana Laoo Maka Mymr Tale Talu Tavt Thai Tibt Yiii".split()
)
"""Scripts that put no space between words: line break classes SA, AK, AS and ID of Unicode Standard Annex 14."""


def library_code(code: str, known: Container[str]) -> str | None:
    """Return the code that a library has for a language; None where it has none.

    That is the code itself, or the language without script and country (``zh-Hant``: ``zh``, ``pt-BR``: ``pt``), its
    withdrawn code among them. A language in another script than its usual one is not what the library knows by that
    code: ``hi-Latn`` has none.
    """
    if code in known:
        return code
    table = known_languages()
    language = code.replace("_", "-").partition("-")[0].lower()
    if writing_of(code) != writing_of(language):
        return None
    names = (language, *(table.get(language).retired.split() if language in table else ()))
    return next((name for name in names if name in known), None)


def writing_of(code: str) -> str:
    """Return the script of the texts in a language: ``Hani``, ``Latn``; empty where the code does not show it."""
    table = known_languages()
    language, *subtags = code.replace("_", "-").split("-")
    script = next((subtag.title() for subtag in subtags if len(subtag) == 4 and subtag.isalpha()), "")
    script = script or next((table.get(name).script for name in (code, language) if name in table), "")
    return TEXT_SCRIPTS.get(script, script) or ("Hani" if language in _CHINESE else "")


def is_unspaced_language(code: str) -> bool:
    """Return whether a language is written without spaces between words."""
    return writing_of(code) in _UNSPACED
