"""Tables of text: tab-separated values and comma-separated values."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.data.readers.column import (
    COLUMNS,
    WHERE,
    Column,
    Condition,
    counted,
    pick,
    wanted_columns,
    wanted_records,
)
from harness.data.readers.reader import Reader, choice, flag
from harness.data.readers.text import is_blank_row, numbered_lines, without_blank_lines
from harness.data.records import Row
from harness.errors import DataError, UsageError

_HEADER = "'true' when the first line names the columns, 'false' when `columns` names them all"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dialect:
    """How one kind of table is written."""

    reader: str
    delimiter: str
    quoted: bool
    """Whether a cell may be quoted as RFC 4180 says; otherwise quotation marks are text."""
    header: bool
    columns: tuple[Column, ...] | None
    condition: Condition | None

    def __post_init__(self) -> None:
        """Raise `UsageError` where nothing names the columns, or they are renamed without a header."""
        if self.header:
            return
        if self.columns is None:
            raise UsageError(
                f"The reader {self.reader!r} needs the option 'columns' when there is no header, "
                "such as 'premise,hypothesis,label'."
            )
        for column in self.columns:
            if column.source != column.field:
                raise UsageError(
                    f"The reader option 'columns' cannot rename {column.source!r} where there is no header: "
                    "give the names of the columns."
                )


def _tsv(options: Mapping[str, str]) -> _Dialect:
    return _Dialect(
        reader="tsv",
        delimiter="\t",
        quoted=choice(options, "quoting", ("none", "rfc4180")) == "rfc4180",
        header=flag(options, "header", default=False),
        columns=wanted_columns(options),
        condition=wanted_records(options),
    )


def _csv(options: Mapping[str, str]) -> _Dialect:
    return _Dialect(
        reader="csv",
        delimiter=",",
        quoted=True,
        header=flag(options, "header", default=True),
        columns=wanted_columns(options),
        condition=wanted_records(options),
    )


def _read_tsv(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    return _rows(paths, _tsv(options))


def _read_csv(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    return _rows(paths, _csv(options))


def _rows(paths: Sequence[Path], dialect: _Dialect) -> Iterator[Row]:
    for path in paths:
        yield from _file_rows(path, dialect)


def _file_rows(path: Path, dialect: _Dialect) -> Iterator[Row]:
    records = without_blank_lines(path, _cells(path, dialect), is_blank_row)
    if dialect.header:
        names, columns = _header(path, records), dialect.columns
    else:
        names, columns = [column.field for column in dialect.columns or ()], None
    for line, cells in records:
        if len(cells) != len(names):
            raise DataError(
                f"{path}:{line}: expected {counted(len(names))} ({', '.join(names)}), found {len(cells)}."
            )
        record = dict(zip(names, cells, strict=True))
        if dialect.condition is not None and not dialect.condition.holds(record, f"{path}:{line}"):
            continue
        yield Row(fields=pick(record, columns, f"{path}:{line}"), path=str(path), line=line)


def _cells(path: Path, dialect: _Dialect) -> Iterator[tuple[int, list[str]]]:
    if dialect.quoted:
        return _quoted_cells(path, dialect.delimiter)
    return ((line, text.split(dialect.delimiter) if text else []) for line, text in numbered_lines(path))


def _quoted_cells(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    lines = (text + "\n" for _, text in numbered_lines(path))
    table = csv.reader(lines, delimiter=delimiter, strict=True)
    start = 1
    try:
        for cells in table:
            yield start, cells
            start = table.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{path}:{start}: expected cells quoted as RFC 4180 says, found a fault: {error}."
        ) from error


def _header(path: Path, records: Iterator[tuple[int, list[str]]]) -> list[str]:
    line, names = next(records, (1, []))
    if not names:
        raise DataError(f"{path}:1: expected a header line, found an empty file.")
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{path}:{line}: expected unique column names, found {name!r} twice.")
    return names


TSV = Reader(
    name="tsv",
    read=_read_tsv,
    summary="Tab-separated values, one row per line.",
    options={
        "columns": COLUMNS,
        "where": WHERE,
        "header": _HEADER + " (default false)",
        "quoting": "'none' (default: quotation marks are text) or 'rfc4180'",
    },
    check=_tsv,
)

CSV = Reader(
    name="csv",
    read=_read_csv,
    summary="Comma-separated values, quoted as RFC 4180 says.",
    options={"columns": COLUMNS, "where": WHERE, "header": _HEADER + " (default true)"},
    check=_csv,
)
