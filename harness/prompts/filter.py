"""The filters that a template may apply to a field: ``{sentence2|lower_first}``."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from harness.languages.spelling import first_letter, lower_first, upper_first

_BEFORE_MARK = re.compile(r" (['.,])")
_WORD = re.compile(r"[\w\u0300-\u036f]+")
_FULL_STOPS = ".\u3002\u0964\u06d4\uff0e\uff61\u2026"
"""Of Latin, Chinese and Japanese, Devanagari and Bengali, Urdu; full and half width; the ellipsis."""


def _lower_start(text: str, language: str = "") -> str:
    """Return the text with a small first letter, unless its first word is ``I``, ``I'm`` or has more capitals."""
    word = _WORD.match(text)
    tail = word.group()[len(first_letter(text, language)) :] if word else ""
    if not tail or tail != tail.lower():
        return text
    small = lower_first(text, language)
    # Python makes two characters of the Turkish capital with a dot.
    return small.replace("i\u0307", "i", 1) if text[0] == "\u0130" else small


def _lower_root(text: str) -> str:
    """Return the text with a small first letter by the rules of no language, as lm-evaluation-harness does it."""
    return text[:1].lower() + text[1:]


def _drop_last(text: str) -> str:
    return text[:-1]


def _drop_stop(text: str) -> str:
    """Return the text without a final ``.``, ``,`` or ``;``."""
    return text[:-1] if text.endswith((".", ",", ";")) else text


def _drop_period(text: str) -> str:
    """Return the text without the full stops and spaces at its end, in any script of the benchmarks."""
    return text.rstrip(_FULL_STOPS + " ")


def _detokenise(text: str) -> str:
    """Undo the spaces of Penn Treebank tokens; lm-evaluation-harness ``general_detokenize``."""
    text = (
        text.replace(" n't", "n't")
        .replace(" )", ")")
        .replace("( ", "(")
        .replace('" ', '"')
        .replace(' "', '"')
    )
    return _BEFORE_MARK.sub(r"\1", text)


def _pad_marks(text: str) -> str:
    r"""Return the text with spaces around all that is no letter, mark, digit or underscore; T5's SQuAD format.

    Python's ``\\w`` does not match combining marks, so they are put back to their words: mT5's own rule.
    """
    return " ".join(text.translate(_PADDED).split())


class _Padding(dict[int, str]):
    """Code point -> itself, or itself between spaces; found out once for every character that occurs."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        plain = character.isspace() or _is_word(character)
        self[code] = character if plain else f" {character} "
        return self[code]


_PADDED = _Padding()


def _is_word(character: str) -> bool:
    return character == "_" or unicodedata.category(character)[0] in "LMN"


def _paragraph(text: str) -> str:
    """Return the text and a blank line after it, nothing for an empty text."""
    return f"{text}\n\n" if text else ""


FILTERS: Final[Mapping[str, Callable[..., str]]] = MappingProxyType(
    {
        "detokenise": _detokenise,
        "drop_last": _drop_last,
        "drop_period": _drop_period,
        "drop_stop": _drop_stop,
        "lower_first": lower_first,
        "lower_first_root": _lower_root,
        "lower_start": _lower_start,
        "pad_marks": _pad_marks,
        "paragraph": _paragraph,
        "strip": str.strip,
        "upper_first": upper_first,
    }
)
"""By name; those of `CASED` also take the language of the text."""
CASED: Final = frozenset({"lower_first", "lower_start", "upper_first"})
