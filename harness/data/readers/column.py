"""The ``columns`` option: which columns of a record are kept, and under which names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import DataError, UsageError, near_names

__all__ = ["COLUMNS", "Column", "counted", "missing_column", "pick", "wanted_columns"]

COLUMNS = "the columns to keep, separated by commas; 'tags=ner_tags' keeps the column 'ner_tags' as 'tags'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a file and the field it becomes."""

    field: str
    source: str


def wanted_columns(options: Mapping[str, str]) -> tuple[Column, ...] | None:
    """Return the columns that the option ``columns`` names, None when it is not given.

    Raises `UsageError` for an empty name or a field that is named twice.
    """
    if "columns" not in options:
        return None
    columns = []
    for entry in options["columns"].split(","):
        name, _, source = (part.strip() for part in entry.partition("="))
        if not name or ("=" in entry and not source):
            raise UsageError(
                "The reader option 'columns' must hold names separated by commas, "
                f"found {options['columns']!r}."
            )
        columns.append(Column(field=name, source=source or name))
    names = [column.field for column in columns]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"The reader option 'columns' names {name!r} twice: {options['columns']!r}.")
    return tuple(columns)


def pick(record: Mapping[str, Any], columns: Sequence[Column] | None, where: str) -> Mapping[str, Any]:
    """Return the wanted columns of a record, all of them when `columns` is None.

    Raises `DataError` at `where` for a column that is missing in the record.
    """
    if columns is None:
        return record
    for column in columns:
        if column.source not in record:
            raise missing_column(column.source, record, where)
    return {column.field: record[column.source] for column in columns}


def missing_column(name: str, found: Mapping[str, Any] | Sequence[str], where: str) -> DataError:
    """Return the error for a column that is not there, with near names."""
    near = near_names(name, found)
    shown = ", ".join(repr(candidate) for candidate in found) or "none"
    hint = f"Did you mean {near[0]!r}?" if near else None
    return DataError(f"{where}: expected a column {name!r}, found {shown}.", hint=hint)


def counted(count: int) -> str:
    """Return ``1 column`` or ``2 columns``."""
    return "1 column" if count == 1 else f"{count} columns"
