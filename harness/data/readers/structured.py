"""Files of records with named fields: JSON lines, JSON arrays and Parquet."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from harness.data.readers.column import (
    COLUMNS,
    WHERE,
    Column,
    Condition,
    MissingColumnError,
    pick,
    wanted_columns,
    wanted_records,
)
from harness.data.readers.reader import Reader
from harness.data.readers.text import is_blank_line, numbered_lines, whole_text, without_blank_lines
from harness.data.records import Row
from harness.errors import DataError


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
