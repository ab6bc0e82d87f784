"""The filters that a template may apply to a field: ``{sentence2|lower_first}``."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["FILTERS"]

_BEFORE_MARK = re.compile(r" (['.,])")
_FULL_STOPS = ".\u3002\u0964\u06d4\uff0e\uff61\u2026"
"""Of Latin, Chinese and Japanese, Devanagari and Bengali, Urdu; full and half width; the ellipsis."""


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def _lower_start(text: str) -> str:
    """Return the text with a small first letter, unless its first word is ``I``, ``I'm`` or has more capitals."""
    first = re.split(r"\W", text, maxsplit=1)[0]
    if len(first) < 2 or first[1:] != first[1:].lower():
        return text
    # Python makes two characters of the Turkish capital with a dot.
    return ("i" if text[0] == "\u0130" else text[0].lower()) + text[1:]


def _upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]


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


FILTERS: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {
        "detokenise": _detokenise,
        "drop_last": _drop_last,
        "drop_period": _drop_period,
        "drop_stop": _drop_stop,
        "lower_first": _lower_first,
        "lower_start": _lower_start,
        "pad_marks": _pad_marks,
        "strip": str.strip,
        "upper_first": _upper_first,
    }
)
