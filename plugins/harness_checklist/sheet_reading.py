"""Reads a filled-in translator's sheet: a language of a suite, or all faults of the sheet at once."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar, cast, get_args

from harness.errors import MissingDataError, Problem, SpecError, UsageError, near_names
from harness_checklist.checking import faults_of
from harness_checklist.profile import Match, Profile
from harness_checklist.sheet_row import COLUMNS, LEFT_OUT, read_condition, read_listed, unquoted
from harness_checklist.suite import (
    Condition,
    ContextTemplate,
    Entry,
    FillIn,
    Form,
    Gender,
    LanguageSuite,
    ListedFillIn,
    Names,
    PairFillIn,
    Place,
    QuestionTemplate,
    Suite,
    TestTemplate,
)

__all__ = ["read_sheet"]

T = TypeVar("T")
DELIMITERS: Final = {".tsv": "\t", ".csv": ","}
CODE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_IDS: Final = {
    "language": ("",),
    "names": ("script", "borrowed", "male", "female", "last"),
    "normalise": ("articles", "match", "strip", "casefold"),
    "setting": ("names", "balance", "zip"),
    "pair": ("of", "named", "ordered"),
}
_TEXTS: Final = ("context", "question", "answer", "fill")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    text: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One row as it was read."""

    test: str
    part: str
    """Without its slot."""
    slot: str
    id: str
    source: str
    line: int
    texts: tuple[_Cell, ...]
    whens: tuple[_Cell, ...]


@dataclass(slots=True)
class _Sheet:
    path: str
    problems: list[Problem] = field(default_factory=list)
    lines: list[_Line] = field(default_factory=list)

    def fault(self, message: str, line: int | None = None, column: int | None = None) -> None:
        key = "" if column is None else f"column {column}"
        self.problems.append(Problem(message=message, line=line, key=key))

    def place(self, cell: _Cell) -> Place:
        return Place(path=self.path, line=cell.line, column=cell.column)

    def read(self, reader: Callable[[str], T], cell: _Cell, otherwise: T) -> T:
        """Return what a reader makes of a cell; a fault where it cannot."""
        try:
            return reader(cell.text)
        except ValueError as error:
            self.fault(f"{error}", cell.line, cell.column)
            return otherwise

    def finish(self) -> None:
        if self.problems:
            ordered = sorted(dict.fromkeys(self.problems), key=lambda problem: problem.line or 0)
            raise SpecError(self.path, ordered)


def read_sheet(path: Path, suite: Suite) -> LanguageSuite:
    """Return the language of a filled-in sheet.

    A test of which nothing is filled in is left out. Raises `SpecError` with all faults of the sheet, each with its
    line and the number of its column; `UsageError` for a file of another kind.
    """
    if path.suffix not in DELIMITERS:
        raise UsageError(f"The sheet {str(path)!r} is of no known kind: expected .tsv or .csv.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise MissingDataError(f"The sheet {str(path)!r} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"The sheet {str(path)!r} is not UTF-8: {error}.") from error
    sheet = _Sheet(path=str(path))
    _rows(sheet, text, DELIMITERS[path.suffix], suite)
    code = _code(sheet)
    names, profile = _names(sheet), _profile(sheet)
    tests = {}
    for declared in suite.tests:
        lines = [line for line in sheet.lines if line.test == declared.id]
        if _filled(lines):
            before = len(sheet.problems)
            tests[declared.id] = _test(sheet, lines, suite.languages.get(suite.source_language), declared.id)
            if len(sheet.problems) == before:
                for fault in faults_of(tests[declared.id], names):
                    place = fault.place
                    sheet.fault(
                        f"{declared.id}: {fault.message}", place and place.line, place and place.column
                    )
    if not tests:
        sheet.fault("no test is translated: fill in the column 'translation'")
    sheet.finish()
    return LanguageSuite(
        language=code, tests=tests, names=names, profile=profile, place=Place(path=str(path))
    )


# Rows and columns -----------------------------------------------------------------------------------------


def _rows(sheet: _Sheet, text: str, delimiter: str, suite: Suite) -> None:
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
                    return
            else:
                _row(sheet, heads, cells, line, {test.id for test in suite.tests})
    except csv.Error as error:
        sheet.fault(f"the quotation marks of this row are broken ({error})", last + 1)
    if heads is None:
        sheet.fault("the sheet has no heading: expected the columns " + ", ".join(COLUMNS))


def _headed(sheet: _Sheet, heads: Sequence[str], line: int) -> bool:
    missing = [name for name in COLUMNS if name not in heads]
    for name in missing:
        sheet.fault(f"the column {name!r} is missing; found {', '.join(heads)}", line)
    for number, name in enumerate(heads, start=1):
        known = name in COLUMNS or name in {"doubts", ""} or re.fullmatch(r"(variant|when) [2-9][0-9]*", name)
        if not known:
            near = near_names(name, [*COLUMNS, "variant 2", "when 2", "doubts"])
            sheet.fault(f"unknown column {name!r}{_meant(near)}", line, number)
        elif name and heads.index(name) != number - 1:
            sheet.fault(f"the column {name!r} stands twice", line, number)
    return not missing


def _meant(near: Sequence[str]) -> str:
    return f"; did you mean {near[0]!r}?" if near else ""


def _row(sheet: _Sheet, heads: Sequence[str], cells: Sequence[str], line: int, tests: set[str]) -> None:
    if len(cells) > len(heads) and any(cells[len(heads) :]):
        sheet.fault(f"{len(cells)} cells under {len(heads)} columns", line, len(heads) + 1)
        return
    at = {name: number for number, name in enumerate(heads)}

    def cell(name: str) -> _Cell:
        number = at.get(name)
        text = cells[number] if number is not None and number < len(cells) else ""
        return _Cell(text=text, line=line, column=(number or 0) + 1)

    part, _, slot = cell("part").text.strip().partition(" ")
    test, id_ = cell("test").text.strip(), cell("id").text
    column = at["part"] + 1
    if part not in _IDS and part not in _TEXTS:
        sheet.fault(f"unknown part {part!r}{_meant(near_names(part, [*_IDS, *_TEXTS]))}", line, column)
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
        _Line(
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


def _filled(lines: Sequence[_Line]) -> bool:
    return any(
        cell.text not in ("", LEFT_OUT) for line in lines if line.part in _TEXTS for cell in line.texts
    )


# The language as a whole ----------------------------------------------------------------------------------


def _values(sheet: _Sheet, lines: Sequence[_Line], part: str, slot: str = "") -> dict[str, _Cell]:
    found: dict[str, _Cell] = {}
    for line in lines:
        if (line.part, line.slot) == (part, slot):
            if line.id in found:
                sheet.fault(f"{part} {line.id!r} stands twice: also on line {found[line.id].line}", line.line)
            found.setdefault(line.id, line.texts[0])
    return found


def _code(sheet: _Sheet) -> str:
    cell = _values(sheet, sheet.lines, "language").get("")
    if cell is None:
        sheet.fault("the row 'language' is missing")
        return ""
    code = cell.text.strip()
    if not CODE.fullmatch(code):
        sheet.fault(f"{code!r} is no language code", cell.line, cell.column)
    return code


def _names(sheet: _Sheet) -> Names:
    found = _values(sheet, sheet.lines, "names")

    def names(key: str) -> tuple[str, ...]:
        return sheet.read(read_listed, found[key], ()) if key in found else ()

    def text(key: str) -> str:
        return sheet.read(unquoted, found[key], "") if key in found else ""

    return Names(
        male=names("male"),
        female=names("female"),
        last=names("last"),
        script=text("script"),
        borrowed=text("borrowed") or None,
    )


def _profile(sheet: _Sheet) -> Profile:
    found = {key: cell for key, cell in _values(sheet, sheet.lines, "normalise").items() if cell.text}
    plain = Profile()
    matches: tuple[Match, ...] = get_args(Match)
    match = found["match"].text.strip() if "match" in found else plain.match
    if match not in matches:
        cell = found["match"]
        sheet.fault(f"expected {', '.join(matches)}, found {match!r}", cell.line, cell.column)
        match = plain.match
    return Profile(
        articles=sheet.read(read_listed, found["articles"], ()) if "articles" in found else (),
        match=cast("Match", match),
        strip=sheet.read(unquoted, found["strip"], "") if "strip" in found else plain.strip,
        casefold=_flag(sheet, found.get("casefold"), plain.casefold),
    )


def _flag(sheet: _Sheet, cell: _Cell | None, otherwise: bool) -> bool:
    if cell is None or not cell.text:
        return otherwise
    if cell.text.strip() not in {"yes", "no"}:
        sheet.fault(f"expected yes or no, found {cell.text!r}", cell.line, cell.column)
    return cell.text.strip() == "yes"


# One test -------------------------------------------------------------------------------------------------


def _test(sheet: _Sheet, lines: Sequence[_Line], source: LanguageSuite | None, test: str) -> TestTemplate:
    settings = _values(sheet, lines, "setting")
    names = settings["names"].text.strip() if "names" in settings else "any"
    genders: tuple[Gender, ...] = get_args(Gender)
    if names not in genders:
        cell = settings["names"]
        sheet.fault(f"expected {', '.join(genders)}, found {names!r}", cell.line, cell.column)
    zips = sheet.read(read_listed, settings["zip"], ()) if "zip" in settings else ()
    balance = settings["balance"].text.strip() if "balance" in settings else ""
    fills = _fills(sheet, lines)
    original = None if source is None else source.tests.get(test)
    for slot in original.fills if original is not None else ():
        if slot not in fills:
            sheet.fault(f"{test}: the rows of the fill-in {slot!r} are missing")
    return TestTemplate(
        contexts=_contexts(sheet, lines),
        questions=_questions(sheet, lines),
        fills=fills,
        names=cast("Gender", names),
        zips=tuple(tuple(members.split("+")) for members in zips),
        balance=balance or None,
    )


def _variants(sheet: _Sheet, line: _Line) -> list[tuple[int, _Cell, str, Condition]]:
    """Return the texts of a row with their number, cell and condition; a fault where there is none."""
    found = []
    for number, (cell, when) in enumerate(zip(line.texts, line.whens, strict=True)):
        if cell.text in ("", LEFT_OUT):
            if when.text and cell.text == "" and line.part != "answer":
                sheet.fault("a condition without a text", when.line, when.column)
            continue
        text = sheet.read(unquoted, cell, "")
        condition: Condition = sheet.read(read_condition, when, {})
        found.append((number, cell, text, condition))
    if not found and line.texts[0].text != LEFT_OUT:
        cell = line.texts[0]
        sheet.fault(f"the {line.part} {line.id!r} is not translated: {line.source!r}", cell.line, cell.column)
    return found


def _contexts(sheet: _Sheet, lines: Sequence[_Line]) -> tuple[ContextTemplate, ...]:
    return tuple(
        ContextTemplate(text=text, when=when, place=sheet.place(cell))
        for line in lines
        if line.part == "context"
        for _, cell, text, when in _variants(sheet, line)
    )


def _questions(sheet: _Sheet, lines: Sequence[_Line]) -> tuple[QuestionTemplate, ...]:
    answers: dict[str, _Line] = {}
    for line in lines:
        if line.part == "answer":
            if line.id in answers:
                sheet.fault(
                    f"the answer {line.id!r} stands twice: also on line {answers[line.id].line}", line.line
                )
            answers.setdefault(line.id, line)
    found = []
    for line in lines:
        if line.part != "question":
            continue
        answer = answers.pop(line.id, None)
        if answer is None:
            sheet.fault(f"the question {line.id!r} has no row 'answer' with this id", line.line)
            continue
        given = {number: text for number, _, text, _ in _variants(sheet, answer)}
        for number, cell, text, when in _variants(sheet, line):
            # An answer that is the same for all variants stands once.
            found.append(
                QuestionTemplate(
                    ask=text, answer=given.get(number, given.get(0, "")), when=when, place=sheet.place(cell)
                )
            )
    for line in answers.values():
        sheet.fault(f"the answer {line.id!r} has no row 'question' with this id", line.line)
    return tuple(found)


def _fills(sheet: _Sheet, lines: Sequence[_Line]) -> dict[str, FillIn]:
    fills: dict[str, FillIn] = {}
    for line in lines:
        if line.slot in fills or line.part not in {"fill", "pair"}:
            continue
        if line.part == "pair":
            fills[line.slot] = _pair(sheet, lines, line)
            continue
        entries: dict[str, list[_Line]] = {}
        for other in lines:
            if (other.part, other.slot) == ("fill", line.slot):
                entries.setdefault(other.id, []).append(other)
        made = [_entry(sheet, name, own) for name, own in entries.items()]
        kept = tuple(entry for entry in made if entry.forms)
        fills[line.slot] = ListedFillIn(entries=kept, place=sheet.place(line.texts[0]))
    return fills


def _pair(sheet: _Sheet, lines: Sequence[_Line], line: _Line) -> PairFillIn:
    found = _values(sheet, lines, "pair", line.slot)
    return PairFillIn(
        of=sheet.read(read_listed, found["of"], ()) if "of" in found else (),
        named=(found["named"].text.strip() or None) if "named" in found else None,
        ordered=_flag(sheet, found.get("ordered"), True),
        place=sheet.place(line.texts[0]),
    )


def _entry(sheet: _Sheet, name: str, rows: Sequence[_Line]) -> Entry:
    """Return a fill-in: its rows are its aligned forms, in their order; each column of texts is a variant."""
    by_variant: dict[int, list[str]] = {}
    whens: Mapping[int, Condition] = {}
    cells: dict[int, _Cell] = {}
    for position, row in enumerate(rows):
        found = _variants(sheet, row)
        if position == 0:
            whens = {number: when for number, _, _, when in found}
        for number, cell, text, when in found:
            if position and when and when != whens.get(number):
                sheet.fault("a condition stands beside the first form of a fill-in", cell.line, cell.column)
            cells.setdefault(number, cell)
            by_variant.setdefault(number, []).append(text)
    forms = tuple(
        Form(texts=tuple(texts), when=whens.get(number, {}), place=sheet.place(cells[number]))
        for number, texts in by_variant.items()
    )
    return Entry(id=name, forms=forms)
