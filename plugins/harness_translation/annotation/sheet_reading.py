"""Reads filled-in sheets: CSV files or JSON files of the page; all faults are reported at once."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness import DataError, UsageError, near_names
from harness_translation.annotation.key import Key, Sheet
from harness_translation.annotation.sheet import ADJUDICATED, COLUMNS

__all__ = ["Labelled", "read_sheets"]

SHOWN_FAULTS: Final = 100
NEEDED: Final = ("row", "label")


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """The labels that annotators gave to rows."""

    labels: Mapping[str, Mapping[str, str]]
    """By annotator and row."""
    comments: Mapping[str, Mapping[str, str]]
    skipped: int = 0
    """Rows of these annotators' sheets without a label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    where: str
    row: str
    annotator: str
    label: str
    comment: str


@dataclass(slots=True)
class _Reading:
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    comments: dict[str, dict[str, str]] = field(default_factory=dict)
    places: dict[tuple[str, str], str] = field(default_factory=dict)
    """Where a row of an annotator occurred first."""
    files: dict[tuple[str, str], str] = field(default_factory=dict)
    """The file of each annotator and sheet."""
    faults: list[str] = field(default_factory=list)
    skipped: int = 0


def read_sheets(
    paths: Sequence[Path], key: Key, *, annotator: str | None = None, allow_skipped: bool = False
) -> Labelled:
    """Return the labels of filled-in sheets.

    Args:
        paths: ``.csv``, ``.tsv`` or ``.json`` files.
        key: The key of the rows.
        annotator: The annotator of all labels; None uses the names in the files. Labels in a column ``adjudicated``
            are always final labels.
        allow_skipped: Whether rows may be without a label.

    Raises:
        DataError: With all faults of all files, by line: unknown rows, rows that one annotator labelled
            twice, labels that the task does not have, and rows without a label unless `allow_skipped`.
        UsageError: For a file that cannot be read.
    """
    reading = _Reading()
    for path in paths:
        for line in _lines(path, reading.faults):
            _take(line, path, key, annotator, reading, allow_skipped)
    for (name, sheet_name), file in reading.files.items():
        sheet = next(sheet for sheet in key.sheets if sheet.name == sheet_name)
        missing = [row for row in sheet.by_row if (name, row) not in reading.places]
        reading.skipped += len(missing)
        if missing and name != ADJUDICATED and not allow_skipped:
            rows = "row" if len(missing) == 1 else "rows"
            reading.faults.append(
                f"{file}: {len(missing)} {rows} of the sheet {sheet_name!r} are missing for the annotator {name!r}, "
                f"first row {missing[0]!r}"
            )
    if reading.faults:
        raise _faults_error(reading.faults)
    return Labelled(labels=reading.labels, comments=reading.comments, skipped=reading.skipped)


def _faults_error(faults: Sequence[str]) -> DataError:
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    shown = "".join(f"\n  {fault}" for fault in faults[:SHOWN_FAULTS])
    more = f"\n  and {len(faults) - SHOWN_FAULTS} more" if len(faults) > SHOWN_FAULTS else ""
    hint = None
    if any("has no label" in fault or "missing for" in fault for fault in faults):
        hint = "\nTo allow rows without a label, use --allow-skipped."
    return DataError(f"The sheets have {count}; nothing was imported:{shown}{more}", hint=hint)


def _take(
    line: _Line, path: Path, key: Key, annotator: str | None, reading: _Reading, allow_skipped: bool
) -> None:
    final = line.annotator == ADJUDICATED
    name = (None if final else annotator) or line.annotator or path.stem
    sheet = key.sheet_of(line.row)
    if sheet is None:
        reading.faults.append(f"{line.where}: no sheet has the row {line.row!r}")
        return
    reading.files.setdefault((name, sheet.name), str(path))
    first = reading.places.setdefault((name, line.row), line.where)
    if first != line.where:
        reading.faults.append(
            f"{line.where}: the annotator {name!r} has the row {line.row!r} twice, first at {first}"
        )
        return
    if line.comment:
        reading.comments.setdefault(name, {})[line.row] = line.comment
    if not line.label:
        reading.skipped += 1
        if not allow_skipped:
            reading.faults.append(f"{line.where}: the row {line.row!r} has no label")
        return
    label = _label(line.label, sheet)
    if label is None:
        near = near_names(line.label, sheet.labels)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        expected = ", ".join(sheet.labels)
        reading.faults.append(
            f"{line.where}: unknown label {line.label!r}; expected one of {expected}{meant}"
        )
        return
    reading.labels.setdefault(name, {})[line.row] = label


def _label(text: str, sheet: Sheet) -> str | None:
    """Return the label that a text means, ignoring case."""
    return next((label for label in sheet.labels if label.casefold() == text.casefold()), None)


def _lines(path: Path, faults: list[str]) -> Iterator[_Line]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"The sheet {str(path)!r} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"The sheet {str(path)!r} is not UTF-8: {error}.") from error
    if path.suffix == ".json":
        return _json_lines(path, text, faults)
    if path.suffix in {".csv", ".tsv"}:
        return _table_lines(path, text, faults)
    raise UsageError(f"The sheet {str(path)!r} has an unknown format: expected .csv, .tsv or .json.")


def _table_lines(path: Path, text: str, faults: list[str]) -> Iterator[_Line]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(path, text))
    names: list[str] | None = None
    end = 0
    for values in reader:
        start, end = end + 1, reader.line_num
        if not any(value.strip() for value in values) or values[0].startswith("#"):
            continue
        if names is None:
            names = [value.strip() for value in values]
            absent = [name for name in NEEDED if name not in names]
            if absent:
                faults.append(f"{path}:{start}: expected the columns row and label, found {', '.join(names)}")
                return
            continue
        if len(values) > len(names):
            faults.append(f"{path}:{start}: found {len(values)} fields for {len(names)} columns")
            continue
        fields = dict(zip(names, values, strict=False))
        row, given, label, comment = (fields.get(name, "").strip() for name in COLUMNS)
        yield _Line(where=f"{path}:{start}", row=row, annotator=given, label=label, comment=comment)
        final = fields.get(ADJUDICATED, "").strip()
        if final:
            yield _Line(where=f"{path}:{start}", row=row, annotator=ADJUDICATED, label=final, comment="")
    if names is None:
        faults.append(f"{path}: has no heading and no rows")


def _delimiter(path: Path, text: str) -> str:
    """Return the delimiter of a table: in many countries, spreadsheets write semicolons into .csv files."""
    if path.suffix == ".tsv":
        return "\t"
    heading = next((line for line in text.splitlines() if line.startswith(("row", '"row"'))), "row,")
    return max(",;\t", key=heading.count)


def _json_lines(path: Path, text: str, faults: list[str]) -> Iterator[_Line]:
    try:
        content = json.loads(text)
    except ValueError as error:
        faults.append(f"{path}: is not JSON: {error}")
        return
    rows = content.get("rows") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        faults.append(f"{path}: expected an object with 'annotator' and 'rows', as the page saves it")
        return
    at = 0
    for number, row in enumerate(rows, start=1):
        if not _is_row(row):
            faults.append(f"{path}: row {number} is not an object with the texts 'row' and 'label'")
            continue
        at = max(at, text.find(json.dumps(row["row"], ensure_ascii=False), at + 1))
        yield _Line(
            where=f"{path}:{text.count(chr(10), 0, at) + 1}",
            row=row["row"],
            annotator=str(content.get("annotator") or ""),
            label=row["label"].strip(),
            comment=row.get("comment", "").strip(),
        )


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and {"row", "label"} <= set(row)
        and all(isinstance(row.get(name, ""), str) for name in ("row", "label", "comment"))
    )
