"""Files of records with named fields: TSV, CSV, JSON lines, JSON arrays and Parquet."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from harness.data.readers.reader import (
    COLUMNS,
    WHERE,
    Column,
    Condition,
    MissingColumnError,
    Reader,
    choice,
    counted,
    flag,
    is_blank_line,
    is_blank_row,
    numbered_lines,
    pick,
    wanted_columns,
    wanted_records,
    whole_text,
    without_blank_lines,
)
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
    return _table_rows(paths, _tsv(options))


def _read_csv(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    return _table_rows(paths, _csv(options))


def _table_rows(paths: Sequence[Path], dialect: _Dialect) -> Iterator[Row]:
    for path in paths:
        yield from _file_rows(path, dialect)


def _file_rows(path: Path, dialect: _Dialect) -> Iterator[Row]:
    records = without_blank_lines(path, _table_cells(path, dialect), is_blank_row)
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


def _table_cells(path: Path, dialect: _Dialect) -> Iterator[tuple[int, list[str]]]:
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


def read_jsonl(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row for every line that is not blank, each a JSON object."""
    columns, condition = wanted_columns(options), wanted_records(options)
    for path in paths:
        for line, text in without_blank_lines(path, numbered_lines(path), is_blank_line):
            record = _object(parse_json(text, path, first_line=line), f"{path}:{line}")
            if condition is not None and not condition.holds(record, f"{path}:{line}"):
                continue
            yield Row(fields=pick(record, columns, f"{path}:{line}"), path=str(path), line=line)


def read_json(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row for every object of a JSON array; the row's line is the number of the object."""
    columns, condition = wanted_columns(options), wanted_records(options)
    for path in paths:
        records = parse_json(whole_text(path), path)
        if "records" in options:
            records = Column(field="", source=options["records"]).value(
                _object(records, f"{path}:1"), f"{path}:1"
            )
        if not isinstance(records, list):
            raise DataError(f"{path}:1: expected an array of objects, found {_kind(records)}.")
        for number, value in enumerate(records, start=1):
            record = _object(value, f"{path}: record {number}")
            if condition is not None and not condition.holds(record, f"{path}: record {number}"):
                continue
            yield Row(fields=pick(record, columns, f"{path}: record {number}"), path=str(path), line=number)


def read_parquet(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield one row for every record of Parquet files; the row's line is the number of the record."""
    import pyarrow
    from pyarrow import parquet

    columns, condition = wanted_columns(options), wanted_records(options)
    for path in paths:
        number = 0
        try:
            with parquet.ParquetFile(path) as file:
                sources = source_columns(columns, condition, file.schema_arrow.names, str(path))
                for batch in file.iter_batches(columns=sources):
                    for record in batch.to_pylist():
                        number += 1
                        where = f"{path}: record {number}"
                        if condition is None or condition.holds(record, where):
                            fields = pick(record, columns, where)
                            yield Row(fields=fields, path=str(path), line=number)
        except (pyarrow.ArrowException, OSError) as error:
            reason = str(error).split("\n", maxsplit=1)[0].rstrip(".")
            raise DataError(f"{path}: expected a Parquet file, found: {reason}.") from error


def source_columns(
    columns: Sequence[Column] | None, condition: Condition | None, known: Sequence[str], where: str
) -> list[str] | None:
    """Return the columns of a file that are read, None for all; raises `DataError` for one that is missing."""
    if columns is None:
        return None
    names = [name for column in columns for name, *_ in column.parts(known)]
    conditions = [] if condition is None else condition.values
    names += [name for source in conditions for name, *_ in Column(field="", source=source).parts(known)]
    for name in names:
        if name not in known:
            raise MissingColumnError(name, known, where)
    return list(dict.fromkeys(names))


def parse_json(text: str, path: Path, *, first_line: int = 1) -> Any:
    """Return the value of a JSON text that begins at `first_line` of a file.

    Raises `DataError` for what is no JSON, and for what Python's parser would let pass: a key that stands
    twice in an object, NaN and infinities, half of a surrogate pair.
    """
    try:
        value = _DECODER.decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise DataError(
            f"{path}:{line}: expected JSON, found a fault at column {error.colno}: {error.msg}."
        ) from error
    except UnicodeEncodeError as error:
        raise DataError(
            f"{path}:{first_line}: expected Unicode text, found half of a surrogate pair."
        ) from error
    except _JsonFault as error:
        raise DataError(f"{path}:{first_line}: {error}.") from error
    except ValueError as error:
        # Python converts no integer of more digits than this.
        most = sys.get_int_max_str_digits()
        raise DataError(
            f"{path}:{first_line + _line_of_integer(text, most)}: expected numbers of at most {most:,} digits, found "
            "a longer one."
        ) from error
    except RecursionError as error:
        raise DataError(f"{path}:{first_line}: expected JSON, found too many nested values.") from error
    return value


class _JsonFault(Exception):
    """Content that Python's JSON parser accepts and a data file must not hold."""


def _line_of_integer(text: str, most: int) -> int:
    """Return how many lines precede the first integer of more digits, outside of the strings of a JSON text."""
    pattern = rf'"(?:[^"\\]|\\.)*"|(?P<long>[0-9]{{{most + 1},}})'
    long = next((match for match in re.finditer(pattern, text) if match["long"]), None)
    return 0 if long is None else text.count("\n", 0, long.start())


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _JsonFault(f"expected unique keys, found {twice!r} twice in one object")
    return record


def _reject_constant(name: str) -> NoReturn:
    raise _JsonFault(f"expected finite numbers, found {name}")


# json.loads makes a decoder a call where it gets options.
_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_reject_constant)


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected a JSON object, found {_kind(value)}.")
    return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


JSONL = Reader(
    name="jsonl",
    read=read_jsonl,
    summary="JSON lines: one object per line.",
    options={"columns": COLUMNS, "where": WHERE},
)
JSON = Reader(
    name="json",
    read=read_json,
    summary="A JSON array of objects.",
    options={
        "columns": COLUMNS,
        "where": WHERE,
        "records": "the key of the array, where the file is an object that has it",
    },
)
PARQUET = Reader(
    name="parquet",
    read=read_parquet,
    summary="Apache Parquet.",
    options={"columns": COLUMNS, "where": WHERE},
)
