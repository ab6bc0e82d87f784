"""The labels of annotators: read from filled-in sheets, kept in one file, and decided row by row."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from harness import DataError, UsageError, near_names
from harness.storage.files import write_atomically
from harness_translation.annotation.key import Key, Sheet

__all__ = [
    "ADJUDICATED",
    "COLUMNS",
    "Annotations",
    "final_label",
    "merge",
    "read_annotations",
    "read_sheets",
    "undecided_rows",
    "write_annotations",
]

ADJUDICATED: Final = "adjudicated"
"""The annotator's name in a file of final labels, and a column for them."""
COLUMNS: Final = ("row", "annotator", "label", "comment")
"""The columns that the import reads; the others are texts."""
FILE: Final = "annotations.json"
SHOWN_FAULTS: Final = 100


class Annotations(BaseModel):
    """Labels by annotator and row."""

    model_config = ConfigDict(frozen=True)

    labels: dict[str, dict[str, str]] = {}
    """Those of annotators, without the final labels."""
    final: dict[str, str] = {}
    """The decisions of the adjudicator, by row."""
    comments: dict[str, dict[str, str]] = {}

    def of(self, sheet: Sheet) -> dict[str, dict[str, str]]:
        """Return the labels of a sheet's rows, by annotator and row; annotators without labels are skipped."""
        own = {
            name: {row: label for row, label in labels.items() if row in sheet.by_row}
            for name, labels in sorted(self.labels.items())
        }
        return {name: labels for name, labels in own.items() if labels}


def read_annotations(folder: Path) -> Annotations:
    """Return the imported labels, which may be none; raises `DataError` for a broken file."""
    path = folder / FILE
    try:
        return Annotations.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Annotations()
    except (OSError, ValidationError) as error:
        raise DataError(f"The labels {str(path)!r} cannot be read: {error}.") from error


def write_annotations(annotations: Annotations, folder: Path) -> None:
    """Write all labels into the folder of an annotation."""
    write_atomically(folder / FILE, annotations.model_dump_json(indent=1) + "\n")


def final_label(row: str, annotations: Annotations) -> str | None:
    """Return the final label of a row; None while it is undecided.

    It is the adjudicator's label, or else the label that more than half of the annotators gave: with two annotators,
    both.
    """
    if row in annotations.final:
        return annotations.final[row]
    given = Counter(labels[row] for labels in annotations.labels.values() if row in labels)
    label, votes = next(iter(given.most_common(1)), (None, 0))
    return label if 2 * votes > given.total() else None


def undecided_rows(sheet: Sheet, annotations: Annotations) -> list[str]:
    """Return the rows that were labelled and still have no final label, in the order of the sheet."""
    labelled = {row for labels in annotations.labels.values() for row in labels}
    return [row for row in sheet.by_row if row in labelled and final_label(row, annotations) is None]


def merge(annotations: Annotations, new: Annotations, key: Key, *, replace: bool = False) -> Annotations:
    """Return the labels with new ones added.

    Raises `UsageError` if an annotator's labels of a sheet, or a final label, exist already and `replace` is not
    set.
    """
    merged = annotations.model_copy(deep=True)
    for name, own in {**new.labels, ADJUDICATED: new.final}.items():
        final = name == ADJUDICATED
        target = merged.final if final else merged.labels.setdefault(name, {})
        for sheet in key.sheets:
            rows = [row for row in own if row in sheet.by_row]
            there = [row for row in (rows if final else sheet.by_row) if row in target] if rows else []
            if there and not replace:
                raise UsageError(
                    f"The annotator {name!r} already has labels of the sheet {sheet.name!r}; the first row is "
                    f"{there[0]!r}.",
                    hint="Replace them with --replace, or name another annotator with --annotator NAME.",
                )
            for row in there:
                del target[row]
        target.update(own)
    for name, comments in new.comments.items():
        merged.comments.setdefault(name, {}).update(comments)
    return merged


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    where: str
    row: str
    annotator: str
    label: str
    comment: str


def read_sheets(
    paths: Sequence[Path], key: Key, *, annotator: str | None = None, allow_skipped: bool = False
) -> tuple[Annotations, int]:
    """Return the labels of filled-in sheets, and the number of rows of these sheets without one.

    Args:
        paths: ``.csv`` or ``.tsv`` files: filled-in sheets, or exports of Label Studio.
        key: The key of the rows.
        annotator: The annotator of all labels; None uses the names in the files. Labels in a column ``adjudicated``
            are always final labels.
        allow_skipped: Whether rows may be without a label.

    Raises:
        DataError: With all faults of all files, by line: unknown rows, rows that one annotator labelled
            twice, labels that the task does not have, and rows without a label unless `allow_skipped`.
        UsageError: For a file that cannot be read.
    """
    faults: list[str] = []
    skipped: list[str] = []
    seen: dict[tuple[str, str], _Line] = {}
    found: dict[str, dict[str, dict[str, str]]] = {"labels": {}, "comments": {}}
    for line in (line for path in paths for line in _lines(path, annotator, faults)):
        sheet, first = key.sheet_of(line.row), seen.setdefault((line.annotator, line.row), line)
        fault = _fault(line, sheet, first)
        if fault:
            faults.append(f"{line.where}: {fault}")
            continue
        for name, value in (("labels", _label(line, sheet)), ("comments", line.comment)):
            if value:
                found[name].setdefault(line.annotator, {})[line.row] = value
        if not line.label:
            skipped.append(f"{line.where}: the row {line.row!r} has no label")
    unlabelled = len(skipped)
    for sheet in key.sheets:
        for name in {name: None for name, row in seen if row in sheet.by_row}:
            missing = [row for row in sheet.by_row if (name, row) not in seen]
            unlabelled += len(missing)
            # An adjudicator labels some of the rows only.
            if missing and name != ADJUDICATED:
                rows = "row" if len(missing) == 1 else "rows"
                skipped.append(
                    f"{_file(seen, name, sheet)}: {len(missing)} {rows} of the sheet {sheet.name!r} are missing for "
                    f"the annotator {name!r}, first row {missing[0]!r}"
                )
    every = faults if allow_skipped else [*faults, *skipped]
    if every:
        count = "1 fault" if len(every) == 1 else f"{len(every)} faults"
        shown = "".join(f"\n  {fault}" for fault in every[:SHOWN_FAULTS])
        more = f"\n  and {len(every) - SHOWN_FAULTS} more" if len(every) > SHOWN_FAULTS else ""
        hint = "\nTo allow rows without a label, use --allow-skipped." if skipped else None
        raise DataError(f"The sheets have {count}; nothing was imported:{shown}{more}", hint=hint)
    final = found["labels"].pop(ADJUDICATED, {})
    return Annotations(labels=found["labels"], final=final, comments=found["comments"]), unlabelled


def _fault(line: _Line, sheet: Sheet | None, first: _Line) -> str:
    """Return what is wrong with a line, or an empty text."""
    if sheet is None:
        return f"no sheet has the row {line.row!r}"
    if first is not line:
        return f"the annotator {line.annotator!r} has the row {line.row!r} twice, first at {first.where}"
    if line.label and not _label(line, sheet):
        near = near_names(line.label, sheet.labels)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        return f"unknown label {line.label!r}; expected one of {', '.join(sheet.labels)}{meant}"
    return ""


def _label(line: _Line, sheet: Sheet | None) -> str:
    """Return the label that a line means, ignoring case; an empty text without one."""
    by_case = {label.casefold(): label for label in sheet.labels} if sheet else {}
    return by_case.get(line.label.casefold(), "")


def _file(seen: Mapping[tuple[str, str], _Line], name: str, sheet: Sheet) -> str:
    """Return the first file with rows of an annotator's sheet."""
    places = (line.where for (who, row), line in seen.items() if who == name and row in sheet.by_row)
    return next(places).rpartition(":")[0]


def _lines(path: Path, annotator: str | None, faults: list[str]) -> Iterator[_Line]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The sheet {str(path)!r} cannot be read as UTF-8 text: {error}.") from error
    if path.suffix not in {".csv", ".tsv"}:
        raise UsageError(f"The sheet {str(path)!r} has an unknown format: expected .csv or .tsv.")
    # In many countries, spreadsheets write semicolons into .csv files.
    heading = next((line for line in text.splitlines() if line and not line.lstrip('"').startswith("#")), "")
    delimiter = "\t" if path.suffix == ".tsv" else max(",;\t", key=heading.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    names: list[str] = []
    end = 0
    for values in reader:
        start, end = end + 1, reader.line_num
        if not any(value.strip() for value in values) or values[0].startswith("#"):
            continue
        if not names:
            names = [value.strip() for value in values]
            if not {"row", "label"} <= set(names):
                faults.append(f"{path}:{start}: expected the columns row and label, found {', '.join(names)}")
                return
            continue
        if len(values) > len(names):
            faults.append(f"{path}:{start}: found {len(values)} fields for {len(names)} columns")
            continue
        fields = dict(zip(names, values, strict=False))
        row, given, label, comment = (fields.get(name, "").strip() for name in COLUMNS)
        # Final labels are an adjudicator's, even if --annotator names the other labels' annotator.
        name = given if given == ADJUDICATED else annotator or given or path.stem
        yield _Line(where=f"{path}:{start}", row=row, annotator=name, label=label, comment=comment)
        final = fields.get(ADJUDICATED, "").strip()
        if final:
            yield _Line(where=f"{path}:{start}", row=row, annotator=ADJUDICATED, label=final, comment="")
    if not names:
        faults.append(f"{path}: has no heading and no rows")
