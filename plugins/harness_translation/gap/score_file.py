"""Tables of scores by version of a test set, one score per row.

A file has the columns ``table task metric model train split variant translator lang value``, separated by tabs. Values
keep their unit and their decimals. ``variant`` is ZS, TT, TE or BT, or DELTA for a printed difference;
``lang`` is a code, ``avg`` for a printed average, or ``en@hi`` for the source language's score on the items of
Hindi.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Final

from harness import DataError, UsageError
from harness_translation.gap.formula import VARIANTS

COLUMNS: Final = (
    "table", "task", "metric", "model", "train", "split", "variant", "translator", "lang", "value",
)  # fmt: skip
AVERAGE: Final = "avg"
DELTA: Final = "delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A number as written in a file."""

    text: str
    line: int

    @property
    def exact(self) -> Fraction:
        """Return its exact value."""
        return Fraction(Decimal(self.text))


PrintedRow = Mapping[str, Printed]
"""By language, or ``avg``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreGroup:
    """The rows of one table for one task, metric, model, train variant and split."""

    table: str
    task: str
    metric: str
    model: str
    train: str
    split: str
    rows: Mapping[tuple[str, str], PrintedRow]
    """By variant in lower case (``delta`` for printed differences) and translator."""


def read_scores(path: Path) -> list[ScoreGroup]:
    """Return the tables of a file in its order.

    Raises:
        UsageError: If the file does not exist, or a column is missing.
        DataError: If a value is not a number, the file has none of the four variants, or a cell occurs twice; the
            message names the line.
    """
    if not path.is_file():
        raise UsageError(f"The score file {str(path)!r} does not exist.")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as UTF-8 text: {error}.") from error
    reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    head = next(reader, [])
    missing = [name for name in COLUMNS if name not in head]
    if missing:
        raise UsageError(
            f"{path}: expected the columns {' '.join(COLUMNS)}; {' '.join(missing)} not found in {' '.join(head)!r}.",
            hint="harness_translation.gap.score_file describes the columns.",
        )
    rows_by_group: dict[tuple[str, ...], dict[tuple[str, str], dict[str, Printed]]] = {}
    for number, fields in enumerate(reader, start=2):
        where = f"{path}:{number}"
        if any(fields) and len(fields) != len(head):
            raise DataError(f"{where}: expected {len(head)} fields, found {len(fields)}.")
        row = dict(zip(head, (field.strip() for field in fields), strict=False))
        if not row.get("value"):
            continue
        variant, fault = row["variant"].lower(), _fault(row)
        if fault:
            raise DataError(f"{where}: {fault}.")
        group = rows_by_group.setdefault(tuple(row[name] for name in COLUMNS[:6]), {})
        cells = group.setdefault((variant, "" if variant == "zs" else row["translator"]), {})
        if row["lang"] in cells:
            raise DataError(
                f"{where}: the cell of table {row['table']!r}, {row['variant']} {row['translator']} in "
                f"{row['lang']!r} is in line {cells[row['lang']].line} already."
            )
        cells[row["lang"]] = Printed(text=row["value"], line=number)
    groups = [
        ScoreGroup(**dict(zip(COLUMNS[:6], key, strict=True)), rows=rows)
        for key, rows in rows_by_group.items()
    ]
    if not any(variant in VARIANTS for group in groups for variant, _ in group.rows):
        raise DataError(f"{path}: no row is of a variant {', '.join(map(str.upper, VARIANTS))}.")
    return groups


def _fault(row: Mapping[str, str]) -> str:
    """Return the fault of a row, or an empty text."""
    try:
        finite = Decimal(row["value"]).is_finite()
    except InvalidOperation:
        finite = False
    if not finite:
        return f"expected a number as value, found {row['value']!r}"
    if not row["lang"]:
        return "the row names no language"
    if row["variant"].lower() in VARIANTS[1:] and not row["translator"]:
        return f"a score of variant {row['variant']!r} names no translator"
    return ""
