"""The sheet of templates that was released with XTREME-R, ``checklist_templates.tsv``: its cells by language and test.

The first column says what a row is: ``Name`` and ``Capability`` open a test; ``Context``, and every ``Question`` with
the ``Answer`` below it, hold templates; all others are fill-ins. The other columns are languages. A language with
variants has several columns of its name, each with a ``xx-placeholders`` column to its right, which lists the English
fill-ins that the variant is for.

``released_rules.yaml`` next to this module holds what the released generator does in which language.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Final

from harness import Problem, SpecError
from harness.specs import SpecModel, read_yaml, validate_document
from harness_checklist.case import raise_faults, read_text
from harness_checklist.checking import did_you_mean
from harness_checklist.suite import Ids, Profile, SourcePlace, SuiteHead, Texts

FIRST_ANIMALS: Final = "animal_vs_vehicles"
"""The test whose rows hold the fill-ins of the second test of animals, too."""
PROPERTIES: Final = ("color", "size", "age", "shape", "material")


_FILE: Final = files("harness_checklist") / "released_rules.yaml"
MARK: Final = "-placeholders"
TEMPLATE_FIELDS: Final = ("Context", "Question", "Answer")


class _Rules(SpecModel):
    suite: SuiteHead
    fields: dict[str, Texts]
    """Test -> its fill-ins in the sheet."""
    languages: dict[str, Ids]
    """Name of a dependency -> the languages that have it."""
    separators: dict[str, str]
    profiles: dict[str, Profile]


RULES: Final = validate_document(_Rules, read_yaml(_FILE.read_text(encoding="utf-8"), str(_FILE)))


def separator(language: str) -> str:
    """Return the separator of the forms of a fill-in (``older, old``) in one language."""
    return RULES.separators.get(language, ", ")


def released_profile(language: str) -> Profile:
    """Return how the released generator compares answers in one language: its function ``clean``.

    Two answers are the same for the one where they are for the other, with one exception: Afrikaans ``’n`` also goes
    where a letter follows it.
    """
    return RULES.profiles.get(language, Profile())


_IDS: Final = {test.name: test.id for test in RULES.suite.tests.values()}
_FIELDS: Final = {name: (*TEMPLATE_FIELDS, *RULES.fields[test]) for name, test in _IDS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetCell:
    """One cell: a row in one of the columns of a language."""

    text: str
    placeholders: str
    """The English fill-ins that the cell is for, as written; empty means all."""
    english: str
    """The English text of the row."""
    place: SourcePlace

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
    cells: dict[str, dict[str, list[SheetCell]]] = field(default_factory=dict)

    def of(self, language: str, field_name: str) -> list[SheetCell]:
        """Return the cells of a field in one language, empty ones too."""
        return self.cells.get(language, {}).get(field_name, [])

    def filled(self, language: str, field_name: str) -> list[SheetCell]:
        """Return the cells of a field in one language that hold a text."""
        return [cell for cell in self.of(language, field_name) if cell.text]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The tests by their ids, in the order of the suite, and the languages in theirs."""

    path: str
    languages: tuple[str, ...]
    tests: Mapping[str, SheetTest]


@dataclass(frozen=True, slots=True)
class _Column:
    language: str
    text: int
    placeholders: int | None


def read_sheet_rows(path: Path) -> Sheet:
    """Return the sheet.

    Raises `DataError` for a file that cannot be read, `SpecError` with all faults of the first line, or else of the
    others.
    """
    header, *rows = [line.removesuffix("\r").split("\t") for line in read_text(path).split("\n")]
    columns = _columns(path, header)
    reader = _ReleasedSheetReader(path=str(path), columns=columns, width=len(header))
    for number, cells in enumerate(rows, 2):
        reader.row(number, cells)
    languages = tuple(dict.fromkeys(column.language for column in columns))
    raise_faults(path, [*reader.faults, *_gaps(reader.found, languages)])
    tests = {id_: reader.found[name] for name, id_ in _IDS.items() if name in reader.found}
    return Sheet(path=str(path), languages=languages, tests=tests)


def _columns(path: Path, header: list[str]) -> list[_Column]:
    faults = []

    def fault(index: int, message: str) -> None:
        faults.append(Problem(message=message, line=1, key=f"column {index + 1}"))

    if header[0] != "Field":
        fault(0, f"is named {header[0]!r}, but the first column has to be 'Field'")
    if "en" not in header:
        fault(0, "there is no column 'en', which every other language translates")
    columns = []
    for index, name in enumerate(header[1:], 1):
        if name.endswith(MARK):
            if header[index - 1] != name.removesuffix(MARK):
                fault(index, f"{name!r} has no column {name.removesuffix(MARK)!r} before it")
            continue
        if not name.isalpha():
            fault(index, f"{name!r} is no language code")
        follows = header[index + 1 : index + 2] == [name + MARK]
        if not follows and header.count(name) > 1:
            fault(index, f"{name!r} has several columns, but no '{name}{MARK}' follows this one")
        columns.append(_Column(name, index, index + 1 if follows else None))
    if faults:
        raise SpecError(path, faults)
    return columns


class _ReleasedSheetReader:
    """Takes one row after the other; `test` is the one that is open."""

    def __init__(self, *, path: str, columns: list[_Column], width: int) -> None:
        self.path = path
        self.columns = columns
        self.width = width
        self.english = next(column.text for column in columns if column.language == "en")
        self.found: dict[str, SheetTest] = {}
        self.faults: list[Problem] = []
        self.test: SheetTest | None = None

    def row(self, line: int, cells: list[str]) -> None:
        """Add a row, or note why it cannot be read; an empty one ends a test."""
        if not any(cell.strip() for cell in cells):
            self.test = None
            return
        kind, english = cells[0], cells[self.english] if len(cells) == self.width else ""
        if len(cells) != self.width:
            self._fault(line, f"has {len(cells)} cells, but the first line has {self.width}")
            if kind == "Name":
                self.test = None
            elif self.test is not None:
                self.test.rows.append((line, kind))
        elif kind == "Name":
            self._open(line, english)
        elif self.test is None:
            self._fault(line, f"{kind!r} is outside of a test; a row 'Name' opens one")
        elif kind == "Capability":
            self.test.capability = english
        elif kind not in _FIELDS.get(self.test.name, (kind,)):
            allowed = _FIELDS[self.test.name]
            self._fault(line, f"{kind!r} is no field of this test{did_you_mean(kind, allowed)}")
        elif not english.strip():
            self._fault(line, f"the English {kind!r} is empty")
        else:
            self._add(self.test, line, kind, cells)

    def _fault(self, line: int, message: str) -> None:
        self.faults.append(Problem(message=message, line=line))

    def _open(self, line: int, name: str) -> None:
        self.test = SheetTest(name=name, line=line)
        if name not in _FIELDS:
            self._fault(line, f"{name!r} is no test that was released{did_you_mean(name, _FIELDS)}")
        elif name in self.found:
            self._fault(line, f"{name!r} has begun in line {self.found[name].line} before")
        else:
            self.found[name] = self.test

    def _add(self, test: SheetTest, line: int, kind: str, cells: list[str]) -> None:
        test.rows.append((line, kind))
        last = max((index for index, text in enumerate(cells) if text.strip()), default=0)
        cells = [*cells[:last], cells[last].rstrip(), *cells[last + 1 :]]
        for column in self.columns:
            cell = SheetCell(
                text=cells[column.text],
                placeholders="" if column.placeholders is None else cells[column.placeholders],
                english=cells[self.english],
                place=SourcePlace(self.path, line, column.text + 1),
            )
            test.cells.setdefault(column.language, {}).setdefault(kind, []).append(cell)


def _gaps(tests: Mapping[str, SheetTest], languages: tuple[str, ...]) -> Iterator[Problem]:
    """Yield the gaps: missing tests, fields of a test, partners of a question or answer, texts of a language."""
    if not tests:
        yield Problem(message="there is no test: a row 'Name' opens each", line=1)
    for test in tests.values():
        for kind in _FIELDS[test.name]:
            if kind not in [row_kind for _, row_kind in test.rows]:
                yield Problem(message=f"the test {test.name!r} has no {kind!r}", line=test.line)
        if not test.capability:
            yield Problem(message=f"the test {test.name!r} has no 'Capability'", line=test.line)
        for (line, kind), (below, following) in pairwise([(test.line, ""), *test.rows, (0, "")]):
            if kind == "Question" and following != "Answer":
                yield Problem(message="the question has no 'Answer' below it", line=line)
            elif following == "Answer" and kind != "Question":
                yield Problem(message="the answer has no 'Question' above it", line=below)
        yield from _empty_cells(test, languages)


def _empty_cells(test: SheetTest, languages: tuple[str, ...]) -> Iterator[Problem]:
    for language in languages:
        for kind in _FIELDS[test.name]:
            rows: dict[int | None, list[SheetCell]] = {}
            for cell in test.of(language, kind):
                rows.setdefault(cell.place.line, []).append(cell)
            for line, cells in rows.items():
                if not any(cell.text.strip() for cell in cells):
                    key = f"column {cells[0].place.column}"
                    yield Problem(message=f"{kind!r} is empty in {language!r}", line=line, key=key)
