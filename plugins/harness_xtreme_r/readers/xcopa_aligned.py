"""XCOPA with the field ``question`` of an aligned file.

The published field is wrong in five languages (compared with Estonian by ``idx``, test sets: th 250, tr 51,
sw 37, id 4 and it 4 of 500 items), while the labels agree everywhere. Whether an item asks for a cause or an effect
does not depend on the language, so the field of the Estonian item repairs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import DataError, UsageError
from harness.data import COLUMNS, JSONL, Reader, Row, pick, wanted_columns

_NAME = "xcopa_aligned"
_QUESTIONS = ("cause", "effect")


def _read(paths: Sequence[Path], options: Mapping[str, str]) -> Iterator[Row]:
    """Yield the rows of the first file, in its order, with ``question`` taken from the second by ``idx``.

    Raises `UsageError` unless there are two files, and `DataError` where their items or labels differ.
    """
    if len(paths) != 2:
        raise UsageError(
            f"The reader {_NAME!r} reads two files, one of the language and an aligned one, found "
            f"{len(paths)}."
        )
    columns = wanted_columns(options)
    own, aligned = (_by_index(path) for path in paths)
    _check_same(own, aligned, *paths)
    for index, row in own.items():
        other = aligned[index]
        if row.fields.get("label") != other.fields.get("label"):
            raise DataError(
                f"{row.where}: expected the label {other.fields.get('label')!r} of the aligned item at "
                f"{other.where}, found {row.fields.get('label')!r}."
            )
        fields = {**row.fields, "question": _question(other)}
        yield Row(fields=pick(fields, columns, row.where), path=row.path, line=row.line)


def _by_index(path: Path) -> dict[Any, Row]:
    rows: dict[Any, Row] = {}
    for row in JSONL.read([path], {}):
        index = row.fields.get("idx")
        if type(index) is not int:
            shown = ", ".join(repr(name) for name in row.fields)
            raise DataError(f"{row.where}: expected a number 'idx', found {index!r} among {shown}.")
        if index in rows:
            raise DataError(f"{row.where}: the 'idx' {index} was already used at {rows[index].where}.")
        rows[index] = row
    return rows


def _check_same(own: Mapping[int, Row], aligned: Mapping[int, Row], path: Path, other: Path) -> None:
    for present, missing, file in ((own, aligned, other), (aligned, own, path)):
        absent = sorted(set(present) - set(missing))
        if absent:
            raise DataError(
                f"{file}: expected the item with 'idx' {absent[0]} of {present[absent[0]].where}, found "
                f"{len(missing)} items without it ({len(absent)} are missing)."
            )


def _question(row: Row) -> str:
    value = row.fields.get("question")
    if value not in _QUESTIONS:
        raise DataError(f"{row.where}: expected the 'question' cause or effect, found {value!r}.")
    return str(value)


XCOPA_ALIGNED = Reader(
    name=_NAME,
    joins=True,
    read=_read,
    summary="XCOPA JSON lines of one language, with 'question' taken from an aligned file, the second one.",
    options={"columns": COLUMNS},
)
