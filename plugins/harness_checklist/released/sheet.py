"""The sheet of templates that was released with XTREME-R, ``checklist_templates.tsv``: its cells by language and test.

The first column says what a row is: ``Name`` and ``Capability`` open a test; ``Context``, and every ``Question`` with
the ``Answer`` below it, hold templates; all others are fill-ins. The other columns are languages. A language with
variants has several columns of its name, each with a ``xx-placeholders`` column to its right, which lists the English
fill-ins that the variant is for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness import DataError, MissingDataError, Problem, SpecError, near_names
from harness_checklist.suites.suite import Place

__all__ = ["TEMPLATE_FIELDS", "Cell", "Sheet", "SheetTest", "read_sheet_rows"]

MARK: Final = "-placeholders"
TEMPLATE_FIELDS: Final = ("Context", "Question", "Answer")
_OPENING: Final = ("Name", "Capability")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: a row in one of the columns of a language."""

    text: str
    placeholders: str
    """The English fill-ins that the cell is for, as written; empty means all."""
    english: str
    """The English text of the row."""
    place: Place

    def is_for(self, english: str) -> bool:
        """Whether it is for a fill-in: its placeholders hold the English text, or its last word, or nothing at all."""
        if not self.placeholders:
            return bool(self.text)
        return english in self.placeholders or english.rsplit(" ", maxsplit=1)[-1] in self.placeholders


@dataclass(slots=True, kw_only=True)
class SheetTest:
    """The rows of a test: by language and field, all its cells from top to bottom, and from left to right in a row."""

    name: str
    line: int
    capability: str = ""
    rows: list[tuple[int, str]] = field(default_factory=list)
    """Line and field of every row."""
    cells: dict[str, dict[str, list[Cell]]] = field(default_factory=dict)

    def of(self, language: str, field_name: str) -> list[Cell]:
        """Return the cells of a field in one language, empty ones too."""
        return self.cells.get(language, {}).get(field_name, [])

    def filled(self, language: str, field_name: str) -> list[Cell]:
        """Return the cells of a field in one language that hold a text."""
        return [cell for cell in self.of(language, field_name) if cell.text]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The tests by their names, in their order, and the languages in theirs."""

    path: str
    languages: tuple[str, ...]
    tests: Mapping[str, SheetTest]
    faults: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class _Column:
    language: str
    text: int
    placeholders: int | None


def read_sheet_rows(path: Path, tests: Mapping[str, tuple[str, ...]]) -> Sheet:
    """Return the sheet; `tests` are the known tests with the fill-in fields that each may have.

    Faults of single rows and cells are in `Sheet.faults`.

    Raises `DataError` for a file that cannot be read, `SpecError` for a first line that names no columns.
    """
    lines = _lines(path)
    columns = _columns(path, lines[0])
    width = len(lines[0])
    reader = _Reader(path=str(path), columns=columns, tests=tests)
    for number, cells in enumerate(lines[1:], 2):
        if not any(cell.strip() for cell in cells):
            reader.test = None
        elif len(cells) != width:
            reader.fault(number, None, f"has {len(cells)} cells, but the first line has {width}")
            reader.skip(number, cells[0])
        else:
            reader.row(number, cells)
    reader.close()
    languages = tuple(dict.fromkeys(column.language for column in columns))
    return Sheet(path=str(path), languages=languages, tests=reader.found, faults=tuple(reader.faults))


def _lines(path: Path) -> list[list[str]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise MissingDataError(f"There is no file {str(path)!r}.") from None
    except OSError as error:
        raise DataError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"{str(path)!r} is not UTF-8 at byte {error.start}; save the sheet as UTF-8."
        ) from error
    lines = [line.removesuffix("\r").split("\t") for line in text.split("\n")]
    if len(lines) > 1 and lines[-1] == [""]:
        lines.pop()
    return lines


def _columns(path: Path, header: list[str]) -> list[_Column]:
    faults = []
    if header[0] != "Field":
        faults.append(_fault(1, 1, f"is named {header[0]!r}, but the first column has to be 'Field'"))
    if "en" not in header:
        faults.append(
            Problem(message="there is no column 'en', which every other language translates", line=1)
        )
    columns = []
    for index, name in enumerate(header[1:], 1):
        if name.endswith(MARK):
            if header[index - 1] != name.removesuffix(MARK):
                faults.append(
                    _fault(1, index + 1, f"{name!r} has no column {name.removesuffix(MARK)!r} before it")
                )
            continue
        if not name.isalpha():
            faults.append(_fault(1, index + 1, f"{name!r} is no language code"))
        follows = index + 1 < len(header) and header[index + 1] == name + MARK
        if not follows and header.count(name) > 1:
            faults.append(
                _fault(1, index + 1, f"{name!r} has several columns, but no '{name}{MARK}' follows this one")
            )
        columns.append(_Column(name, index, index + 1 if follows else None))
    if faults:
        raise SpecError(path, faults)
    return columns


def _fault(line: int, column: int | None, message: str) -> Problem:
    return Problem(message=message, line=line, key=f"column {column}" if column is not None else "")


class _Reader:
    """Takes one row after the other; `test` is the one that is open."""

    def __init__(self, *, path: str, columns: list[_Column], tests: Mapping[str, tuple[str, ...]]) -> None:
        self.path = path
        self.columns = columns
        self.known = tests
        self.english = next(column.text for column in columns if column.language == "en")
        self.found: dict[str, SheetTest] = {}
        self.faults: list[Problem] = []
        self.test: SheetTest | None = None

    def fault(self, line: int, column: int | None, message: str) -> None:
        self.faults.append(_fault(line, column, message))

    def row(self, line: int, cells: list[str]) -> None:
        kind = cells[0]
        if kind == "Name":
            self._open(line, cells[self.english])
        elif self.test is None:
            self.fault(line, 1, f"{kind!r} is outside of a test; a row 'Name' opens one")
        elif kind == "Capability":
            self.test.capability = cells[self.english]
        else:
            self._add(self.test, line, kind, cells)

    def skip(self, line: int, kind: str) -> None:
        """Skip a row whose columns are ambiguous; the other rows are read."""
        if kind == "Name":
            self.test = None
        elif kind in TEMPLATE_FIELDS and self.test is not None:
            self.test.rows.append((line, kind))

    def _open(self, line: int, name: str) -> None:
        self.test = SheetTest(name=name, line=line)
        if name not in self.known:
            near = near_names(name, self.known, limit=1)
            meant = (
                f"; did you mean {near[0]!r}?"
                if near
                else f"; the tests are {', '.join(map(repr, self.known))}"
            )
            self.fault(line, self.english + 1, f"{name!r} is no test that was released{meant}")
        elif name in self.found:
            self.fault(line, self.english + 1, f"{name!r} has begun in line {self.found[name].line} before")
        else:
            self.found[name] = self.test

    def _add(self, test: SheetTest, line: int, kind: str, cells: list[str]) -> None:
        fields = (*TEMPLATE_FIELDS, *self.known.get(test.name, ()))
        if kind not in fields:
            near = near_names(kind, (*_OPENING, *fields), limit=1)
            meant = (
                f"did you mean {near[0]!r}?" if near else f"{test.name!r} has {', '.join(map(repr, fields))}"
            )
            self.fault(line, 1, f"{kind!r} is no field of this test; {meant}")
            return
        if not cells[self.english].strip():
            self.fault(line, self.english + 1, f"the English {kind!r} is empty")
        test.rows.append((line, kind))
        last = max((index for index, text in enumerate(cells) if text.strip()), default=0)
        cells = [*cells[:last], cells[last].rstrip(), *cells[last + 1 :]]
        for column in self.columns:
            cell = Cell(
                text=cells[column.text],
                placeholders="" if column.placeholders is None else cells[column.placeholders],
                english=cells[self.english],
                place=Place(path=self.path, line=line, column=column.text + 1),
            )
            test.cells.setdefault(column.language, {}).setdefault(kind, []).append(cell)

    def close(self) -> None:
        """Look for tests without templates, and for questions without answers."""
        for test in self.found.values():
            kinds = [kind for _, kind in test.rows]
            for kind in ("Context", "Question"):
                if kind not in kinds:
                    self.fault(test.line, None, f"the test {test.name!r} has no {kind!r}")
            if not test.capability:
                self.fault(test.line, None, f"the test {test.name!r} has no 'Capability'")
            for (line, kind), following in zip(test.rows, [*kinds[1:], ""], strict=False):
                if kind == "Question" and following != "Answer":
                    self.fault(line, None, "the question has no 'Answer' below it")
            for (line, kind), before in zip(test.rows, ["", *kinds], strict=False):
                if kind == "Answer" and before != "Question":
                    self.fault(line, None, "the answer has no 'Question' above it")
