"""The members of JSON objects, of the type that a format says they have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from harness import DataError, UsageError

__all__ = ["member", "required_option"]

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
