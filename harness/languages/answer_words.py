"""Words that announce an answer, by language: one table for letters, choices and numbers.

``answer_words.tsv`` has a row per language: the nouns for an answer, those for an option, words for the right one, what
links them to the answer (copulas and small words), negations, causes, words for a minus, and the capital letters that
are words by themselves ("A" in Hungarian). It covers the languages that the shipped prompts have words in.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any, Final

from harness.languages.character import fold, is_unspaced

_UNBORDERED: Final = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3"
_PREFIXED: Final = f"[\u0590-\u06ff{_UNBORDERED}]"
"""Hebrew, Arabic and Korean words may have others joined to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerWords:
    """The words of one language, or of several together; folded (`fold`)."""

    code: str
    provenance: str
    source: str
    answer: tuple[str, ...]
    """answer"""
    option: tuple[str, ...]
    """option, choice, letter"""
    correct: tuple[str, ...]
    """correct, choose"""
    copula: tuple[str, ...]
    """is, are, will be"""
    link: tuple[str, ...]
    """the, so, final"""
    negation: tuple[str, ...]
    """not, wrong"""
    cause: tuple[str, ...]
    """because"""
    minus: tuple[str, ...]
    """minus, negative"""
    letters: tuple[str, ...]
    """Capital letters that are words: A, I."""


_ROLES: Final = tuple(field.name for field in fields(AnswerWords))[3:]


@cache
def answer_words(languages: tuple[str, ...] = ()) -> AnswerWords:
    """Return the words of some languages and of English together.

    Models fall back to English in every language. Without languages, or where the table has none of them, the words
    of all languages are returned. A code with a subtag (``zh-Hant``) has the words of its language.
    """
    table = _table()
    codes = {code if code in table else code.split("-", maxsplit=1)[0] for code in languages} & set(table)
    rows = (
        [table[code] for code in sorted(codes | {"en"})]
        if codes - {"en"} or "en" in languages
        else table.values()
    )
    merged: dict[str, Any] = {
        role: tuple(dict.fromkeys(word for row in rows for word in getattr(row, role))) for role in _ROLES
    }
    return AnswerWords(code="", provenance="", source="", **merged)


@cache
def _table() -> dict[str, AnswerWords]:
    text = resources.files("harness.languages").joinpath("answer_words.tsv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    return {row["code"]: AnswerWords(**_row(row)) for row in rows}


def _row(row: dict[str, str]) -> dict[str, Any]:
    return {
        name: tuple(fold(text).split("|") if text else ()) if name in _ROLES else text
        for name, text in row.items()
    }


def pattern(words: Iterable[str]) -> str:
    """Return a regular expression for any of the words, the longest first; one that never matches for none.

    A word is bordered by what is no letter, but in scripts that join words: there it may be within others.
    """
    ordered = sorted(set(words), key=lambda word: (-len(word), word))
    return f"(?:{'|'.join(map(_bordered, ordered))})" if ordered else "(?!)"


def _bordered(word: str) -> str:
    first, last = word[0], word[-1]
    before = "" if not first.isalpha() or is_unspaced(first) or re.match(_PREFIXED, first) else r"(?<!\w)"
    after = "" if is_unspaced(last) or re.match(f"[{_UNBORDERED}]", last) else r"(?!\w)"
    return before + r"\s+".join(map(re.escape, word.split())) + after
