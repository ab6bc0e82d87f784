"""The rows of a translator's sheet as they were read, with the line and column of every cell."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from harness import Problem, SpecError, near_names
from harness_checklist.sheets.row import COLUMNS
from harness_checklist.suites.suite import Place, Suite

__all__ = ["TEXTS", "Cell", "Line", "Sheet", "read_rows"]

T = TypeVar("T")
_IDS: Final = {
    "language": ("",),
    "names": ("script", "borrowed", "male", "female", "last"),
    "normalise": ("articles", "match", "strip", "casefold"),
    "setting": ("names", "balance", "zip"),
    "pair": ("of", "named", "ordered"),
}
TEXTS: Final = ("context", "question", "answer", "fill")
"""The parts that hold texts to translate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell; line and column are 1-based."""

    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row as it was read."""

    test: str
    part: str
    """Without its slot."""
    slot: str
    id: str
    source: str
    line: int
    texts: tuple[Cell, ...]
    whens: tuple[Cell, ...]


@dataclass(slots=True)
class Sheet:
    """A sheet that is being read: its rows, and the faults found so far."""

    path: str
    problems: list[Problem] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    def fault(self, message: str, line: int | None = None, column: int | None = None) -> None:
        """Note a fault."""
        key = "" if column is None else f"column {column}"
        self.problems.append(Problem(message=message, line=line, key=key))

    def place(self, cell: Cell) -> Place:
        """Return the place of a cell."""
        return Place(path=self.path, line=cell.line, column=cell.column)

    def read(self, reader: Callable[[str], T], cell: Cell, otherwise: T) -> T:
        """Return what a reader makes of a cell; a fault where it cannot."""
        try:
            return reader(cell.text)
        except ValueError as error:
            self.fault(f"{error}", cell.line, cell.column)
            return otherwise

    def finish(self) -> None:
        """Raise `SpecError` with all faults, in the order of their lines, where there are any."""
        if self.problems:
            ordered = sorted(dict.fromkeys(self.problems), key=lambda problem: problem.line or 0)
            raise SpecError(self.path, ordered)


def read_rows(sheet: Sheet, text: str, delimiter: str, suite: Suite) -> bool:
    """Read the rows of a sheet's text into it; notes unknown columns, parts, ids and tests.

    Returns whether its heading has the columns that are needed; else nothing was read.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    heads: list[str] | None = None
    last = 0
    try:
        for cells in reader:
            line, last = last + 1, reader.line_num
            if not any(cells) or cells[0].startswith("#"):
                continue
            if heads is None:
                heads = [cell.strip().lower() for cell in cells]
                if not _headed(sheet, heads, line):
                    return False
            else:
                _row(sheet, heads, cells, line, {test.id for test in suite.tests})
    except csv.Error as error:
        sheet.fault(f"the quotation marks of this row are broken ({error})", last + 1)
    if heads is None:
        sheet.fault("the sheet has no heading: expected the columns " + ", ".join(COLUMNS))
    return heads is not None


def _headed(sheet: Sheet, heads: Sequence[str], line: int) -> bool:
    missing = [name for name in COLUMNS if name not in heads]
    for name in missing:
        sheet.fault(f"the column {name!r} is missing; found {', '.join(heads)}", line)
    for number, name in enumerate(heads, start=1):
        known = name in COLUMNS or name in {"doubts", ""} or re.fullmatch(r"(variant|when) [2-9][0-9]*", name)
        if not known:
            near = near_names(name, [*COLUMNS, "variant 2", "when 2", "doubts"])
            sheet.fault(f"unknown column {name!r}{_meant(near)}", line, number)
        elif name and heads.index(name) != number - 1:
            sheet.fault(f"the column {name!r} is given twice", line, number)
    return not missing


def _meant(near: Sequence[str]) -> str:
    return f"; did you mean {near[0]!r}?" if near else ""


def _row(sheet: Sheet, heads: Sequence[str], cells: Sequence[str], line: int, tests: set[str]) -> None:
    if len(cells) > len(heads) and any(cells[len(heads) :]):
        sheet.fault(f"{len(cells)} cells under {len(heads)} columns", line, len(heads) + 1)
        return
    at = {name: number for number, name in enumerate(heads)}

    def cell(name: str) -> Cell:
        number = at.get(name)
        text = cells[number] if number is not None and number < len(cells) else ""
        return Cell(text=text, line=line, column=(number or 0) + 1)

    part, _, slot = cell("part").text.strip().partition(" ")
    test, id_ = cell("test").text.strip(), cell("id").text
    column = at["part"] + 1
    if part not in _IDS and part not in TEXTS:
        sheet.fault(f"unknown part {part!r}{_meant(near_names(part, [*_IDS, *TEXTS]))}", line, column)
        return
    if part in {"fill", "pair"} and not slot.isidentifier():
        sheet.fault(f"expected '{part}' and the name of a slot, found {cell('part').text!r}", line, column)
        return
    if part in _IDS and id_ not in _IDS[part]:
        sheet.fault(f"{part!r} has no {id_!r}: expected {', '.join(_IDS[part])}", line, at["id"] + 1)
        return
    if (test in tests) == (part in {"language", "names", "normalise"}) or (test and test not in tests):
        sheet.fault(f"the suite has no test {test!r}{_meant(near_names(test, tests))}", line, at["test"] + 1)
        return
    numbers = sorted(int(name.split()[1]) for name in heads if name.startswith("variant "))
    sheet.lines.append(
        Line(
            test=test,
            part=part,
            slot=slot.strip(),
            id=id_,
            source=cell("source").text,
            line=line,
            texts=(cell("translation"), *(cell(f"variant {number}") for number in numbers)),
            whens=(cell("when"), *(cell(f"when {number}") for number in numbers)),
        )
    )
