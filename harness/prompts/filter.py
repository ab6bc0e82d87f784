"""The filters that a template may apply to a field: ``{sentence2|lower_first}``."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["FILTERS"]

_BEFORE_MARK = re.compile(r" (['.,])")


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def _upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def _drop_last(text: str) -> str:
    return text[:-1]


def _drop_stop(text: str) -> str:
    """Return the text without a final ``.``, ``,`` or ``;``."""
    return text[:-1] if text.endswith((".", ",", ";")) else text


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

    Python's ``\\w`` leaves out combining marks, so they are put back to their words: mT5's own rule.
    """
    parts = [
        character if character.isspace() or _is_word(character) else f" {character} " for character in text
    ]
    return " ".join("".join(parts).split())


def _is_word(character: str) -> bool:
    return character == "_" or unicodedata.category(character)[0] in "LMN"


FILTERS: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {
        "detokenise": _detokenise,
        "drop_last": _drop_last,
        "drop_stop": _drop_stop,
        "lower_first": _lower_first,
        "pad_marks": _pad_marks,
        "strip": str.strip,
        "upper_first": _upper_first,
    }
)
