"""Checks of JSON objects, options and offsets that the readers share."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, TypeVar

from harness import DataError, UsageError

Value = TypeVar("Value")


def member(record: Any, name: str, kind: type[Value], where: str) -> Value:
    """Return ``record[name]``; raises `DataError` at `where` where it is missing or of another type."""
    value = record.get(name) if isinstance(record, dict) else None
    if isinstance(value, kind) and not isinstance(value, bool):
        return value
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected an object with {name!r}, found {type(record).__name__}.")
    if value is None:
        shown = ", ".join(repr(key) for key in record) or "nothing"
        raise DataError(f"{where}: expected {name!r}, found {shown}.")
    raise DataError(
        f"{where}: expected {name!r} to be of type {kind.__name__}, found {type(value).__name__}."
    )


def required_option(options: Mapping[str, str], name: str, reader: str) -> str:
    """Return the value of an option; raises `UsageError` where it is not given."""
    value = options.get(name, "").strip()
    if not value:
        raise UsageError(
            f"The reader {reader!r} needs the option {name!r}, found {', '.join(options) or 'none'}."
        )
    return value


def cuts_character(text: str, offset: int) -> bool:
    """Return whether a cut at `offset` would separate a combining mark from its base character.

    Marks are the characters of the Unicode categories Mn, Mc and Me: accents, Arabic vowels, Indic vowel
    signs. Joiners do not count: a Persian word may end before a zero width non-joiner.
    """
    return 0 < offset < len(text) and unicodedata.category(text[offset]).startswith("M")
