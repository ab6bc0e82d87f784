"""The options ``columns`` and ``where``: which columns and records are kept, and under which names."""

from __future__ import annotations

import ast
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import DataError, UsageError, near_names

COLUMNS = (
    "the columns to keep, separated by commas; 'tags=ner_tags' keeps the column 'ner_tags' as 'tags', 'id=page+number' "
    "joins two columns with a slash, 'A=choices.0' is the first value of a list, and 'E=choices.4?' is null where the "
    "list is shorter"
)
WHERE = (
    "only records with this value, 'partition=test', or one of several, 'label=A|B'; 'label' keeps those that have any "
    "value in the column, 'info.language=Polish' looks into it; all conditions must hold, one per line"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a file and the field it becomes."""

    field: str
    source: str

    def parts(self, known: Container[str]) -> list[list[str]]:
        """Return the columns that are joined, each with the steps into its value.

        A name that the file has is that column, whatever characters are in it.
        """
        if self.source in known:
            return [[self.source]]
        return [[name] if name in known else name.split(".") for name in self.source.split("+")]

    def value(self, record: Mapping[str, Any], where: str) -> Any:
        """Return the value in a record; raises `DataError` for a column that is missing."""
        if self.source in record:
            return record[self.source]
        values = []
        for name, *steps in self.parts(record):
            if name not in record:
                raise MissingColumnError(name, record, where)
            value = record[name]
            for step in steps:
                value = _member(value, step, self.source, where)
                if value is None and step.endswith("?"):
                    break
            if self.field == "id" and (value is None or not str(value).strip()):
                raise DataError(f"{where}: expected {name!r} as part of the id, found {value!r}.")
            values.append(value)
        return values[0] if len(values) == 1 else "/".join(map(str, values))


def _member(value: Any, step: str, source: str, where: str) -> Any:
    if isinstance(value, str):
        value = _literal(value, source, where)
    if isinstance(value, Mapping) and step in value:
        return value[step]
    number = step.removesuffix("?")
    if isinstance(value, Sequence) and number.isdecimal():
        if int(number) < len(value):
            return value[int(number)]
        if step.endswith("?"):
            return None
    raise DataError(f"{where}: expected {source!r}, found no {step!r} in it.")


def _literal(text: str, source: str, where: str) -> Any:
    """Return the list or mapping that a cell holds as JSON or Python writes it."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if not isinstance(value, list | tuple | dict):
        raise DataError(f"{where}: expected a list for {source!r}, found {text[:60]!r}.")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Which records are kept: those with all of the values."""

    values: Mapping[str, str | None]
    """Column -> the value as text, or several with bars between them; None means any value but null."""

    def holds(self, record: Mapping[str, Any], where: str) -> bool:
        """Return whether a record is kept; raises `DataError` for a column that is missing."""
        return all(self._has(record, column, value, where) for column, value in self.values.items())

    def _has(self, record: Mapping[str, Any], column: str, value: str | None, where: str) -> bool:
        actual = Column(field="", source=column).value(record, where)
        if value is None:
            return actual is not None
        text = str(actual).strip()
        return text == value or text in value.split("|")


def wanted_records(options: Mapping[str, str]) -> Condition | None:
    """Return the condition of the option ``where``, None when it is not given; raises `UsageError` without a column."""
    if "where" not in options:
        return None
    values: dict[str, str | None] = {}
    for condition in options["where"].split("\n"):
        column, equals, value = (piece.strip() for piece in condition.partition("="))
        if not column or column in values:
            raise UsageError(
                f"The reader option 'where' must name a column once, found {options['where']!r}."
            )
        values[column] = value if equals else None
    return Condition(values=values)


def wanted_columns(options: Mapping[str, str]) -> tuple[Column, ...] | None:
    """Return the columns that the option ``columns`` names, None when it is not given.

    Raises `UsageError` for an empty name or a field that is named twice.
    """
    if "columns" not in options:
        return None
    columns = []
    for entry in options["columns"].split(","):
        name, _, source = (piece.strip() for piece in entry.partition("="))
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
    return {column.field: column.value(record, where) for column in columns}


class MissingColumnError(DataError):
    """A column is not there; the hint has near names."""

    def __init__(self, name: str, found: Mapping[str, Any] | Sequence[str], where: str) -> None:
        near = near_names(name, found)
        columns = ", ".join(repr(candidate) for candidate in found) or "none"
        hint = f"Did you mean {near[0]!r}?" if near else None
        super().__init__(f"{where}: expected a column {name!r}, found {columns}.", hint=hint)
        self.column = name


def counted(count: int) -> str:
    """Return ``1 column`` or ``2 columns``."""
    return "1 column" if count == 1 else f"{count} columns"
