"""Reads a filled-in translator's sheet as one language of a suite."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, cast, get_args

from harness import MissingDataError, UsageError
from harness_checklist.sheets.line import TEXTS, Cell, Line, Sheet, read_rows
from harness_checklist.sheets.row import LEFT_OUT, read_condition, read_listed, unquoted
from harness_checklist.suites.checking import faults_of
from harness_checklist.suites.profile import Match, Profile
from harness_checklist.suites.suite import (
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

DELIMITERS: Final = {".tsv": "\t", ".csv": ","}
CODE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


def read_sheet(path: Path, suite: Suite) -> LanguageSuite:
    """Return the language of a filled-in sheet.

    A test with nothing filled in is skipped. Raises `SpecError` with all faults of the sheet, each with its
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
    sheet = Sheet(path=str(path))
    if not read_rows(sheet, text, DELIMITERS[path.suffix], suite):
        sheet.finish()
    code = _code(sheet)
    names, profile = _names(sheet), _profile(sheet)
    tests = {}
    for declared in suite.tests:
        lines = [line for line in sheet.lines if line.test == declared.id]
        if _filled(lines):
            before = len(sheet.problems)
            tests[declared.id], marks = _test(sheet, lines)
            if len(sheet.problems) == before:
                _check(sheet, declared.id, tests[declared.id], names, marks)
    if not tests:
        sheet.fault("no test is translated: fill in the column 'translation'")
    sheet.finish()
    return LanguageSuite(
        language=code, tests=tests, names=names, profile=profile, place=Place(path=str(path))
    )


def _filled(lines: Sequence[Line]) -> bool:
    return any(cell.text not in ("", LEFT_OUT) for line in lines if line.part in TEXTS for cell in line.texts)


class _Marks:
    """The cells of a test's texts, for faults inside of texts: a place whose line is the number of a cell."""

    def __init__(self) -> None:
        self.cells: list[tuple[Cell, Cell]] = []
        self.places: dict[tuple[int, str | int], Place] = {}
        """As `harness_checklist.suites.checking.Places`."""
        self.contexts: list[Place] = []

    def mark(self, cell: Cell, when: Cell) -> Place:
        """Return a place that identifies the cells of a text and of its condition."""
        self.cells.append((cell, when))
        return Place(path="", line=len(self.cells), column=1)


def _check(sheet: Sheet, name: str, test: TestTemplate, names: Names, marks: _Marks) -> None:
    """Note the faults of a test's templates at their cells, with their position in the text."""
    marked = [
        replace(context, place=place) for context, place in zip(test.contexts, marks.contexts, strict=True)
    ]
    for fault in faults_of(replace(test, contexts=tuple(marked)), names, marks.places):
        place = fault.place
        if place is not None and place.path == "" and place.line is not None:
            cell, when = marks.cells[place.line - 1]
            if fault.message.startswith("when: "):
                sheet.fault(f"{name}: {fault.message}", when.line, when.column)
            else:
                at = f" (at character {place.column} of the text)" if place.column else ""
                sheet.fault(f"{name}: {fault.message}{at}", cell.line, cell.column)
        else:
            line, column = (place.line, place.column) if place is not None else (None, None)
            sheet.fault(f"{name}: {fault.message}", line, column)


# The language as a whole ----------------------------------------------------------------------------------


def _values(sheet: Sheet, lines: Sequence[Line], part: str, slot: str = "") -> dict[str, Cell]:
    found: dict[str, Cell] = {}
    for line in lines:
        if (line.part, line.slot) == (part, slot):
            if line.id in found:
                sheet.fault(
                    f"{part} {line.id!r} is given twice: also on line {found[line.id].line}", line.line
                )
            found.setdefault(line.id, line.texts[0])
    return found


def _code(sheet: Sheet) -> str:
    cell = _values(sheet, sheet.lines, "language").get("")
    if cell is None:
        sheet.fault("the row 'language' is missing")
        return ""
    code = cell.text.strip()
    if not CODE.fullmatch(code):
        sheet.fault(f"{code!r} is no language code", cell.line, cell.column)
    return code


def _names(sheet: Sheet) -> Names:
    found = _values(sheet, sheet.lines, "names")

    def names(key: str) -> tuple[str, ...]:
        return _listed(sheet, found.get(key))

    def text(key: str) -> str:
        return sheet.read(unquoted, found[key], "") if key in found else ""

    return Names(
        male=names("male"),
        female=names("female"),
        last=names("last"),
        script=text("script"),
        borrowed=text("borrowed") or None,
    )


def _profile(sheet: Sheet) -> Profile:
    found = {key: cell for key, cell in _values(sheet, sheet.lines, "normalise").items() if cell.text}
    plain = Profile()
    matches: tuple[Match, ...] = get_args(Match)
    match = found["match"].text.strip() if "match" in found else plain.match
    if match not in matches:
        cell = found["match"]
        sheet.fault(f"expected {', '.join(matches)}, found {match!r}", cell.line, cell.column)
        match = plain.match
    return Profile(
        articles=_listed(sheet, found.get("articles")),
        match=match,
        strip=sheet.read(unquoted, found["strip"], "") if "strip" in found else plain.strip,
        casefold=_flag(sheet, found.get("casefold"), plain.casefold),
    )


def _listed(sheet: Sheet, cell: Cell | None) -> tuple[str, ...]:
    nothing: tuple[str, ...] = ()
    return nothing if cell is None else sheet.read(read_listed, cell, nothing)


def _flag(sheet: Sheet, cell: Cell | None, otherwise: bool) -> bool:
    if cell is None or not cell.text:
        return otherwise
    if cell.text.strip() not in {"yes", "no"}:
        sheet.fault(f"expected yes or no, found {cell.text!r}", cell.line, cell.column)
    return cell.text.strip() == "yes"


# One test -------------------------------------------------------------------------------------------------


def _test(sheet: Sheet, lines: Sequence[Line]) -> tuple[TestTemplate, _Marks]:
    settings = _values(sheet, lines, "setting")
    names = settings["names"].text.strip() if "names" in settings else "any"
    genders: tuple[Gender, ...] = get_args(Gender)
    if names not in genders:
        cell = settings["names"]
        sheet.fault(f"expected {', '.join(genders)}, found {names!r}", cell.line, cell.column)
    zips = _listed(sheet, settings.get("zip"))
    balance = settings["balance"].text.strip() if "balance" in settings else ""
    marks = _Marks()
    test = TestTemplate(
        contexts=_contexts(sheet, lines, marks),
        questions=_questions(sheet, lines, marks),
        fills=_fills(sheet, lines, marks),
        names=cast("Gender", names),
        zips=tuple(tuple(members.split("+")) for members in zips),
        balance=balance or None,
    )
    return test, marks


def _variants(sheet: Sheet, line: Line) -> list[tuple[int, Cell, str, Condition]]:
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


def _contexts(sheet: Sheet, lines: Sequence[Line], marks: _Marks) -> tuple[ContextTemplate, ...]:
    found = []
    for line in lines:
        for number, cell, text, when in _variants(sheet, line) if line.part == "context" else ():
            found.append(ContextTemplate(text=text, when=when, place=sheet.place(cell)))
            marks.contexts.append(marks.mark(cell, line.whens[number]))
    return tuple(found)


def _questions(sheet: Sheet, lines: Sequence[Line], marks: _Marks) -> tuple[QuestionTemplate, ...]:
    answers: dict[str, Line] = {}
    for line in lines:
        if line.part == "answer":
            if line.id in answers:
                sheet.fault(
                    f"the answer {line.id!r} is given twice: also on line {answers[line.id].line}", line.line
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
        given = {number: (other, text) for number, other, text, _ in _variants(sheet, answer)}
        for number, cell, text, when in _variants(sheet, line):
            # An answer that is the same for all variants is written once.
            answer_cell, answered = given.get(number, given.get(0, (answer.texts[0], "")))
            made = QuestionTemplate(ask=text, answer=answered, when=when, place=sheet.place(cell))
            marks.places[id(made), "ask"] = marks.mark(cell, line.whens[number])
            marks.places[id(made), "answer"] = marks.mark(answer_cell, line.whens[number])
            found.append(made)
    for line in answers.values():
        sheet.fault(f"the answer {line.id!r} has no row 'question' with this id", line.line)
    return tuple(found)


def _fills(sheet: Sheet, lines: Sequence[Line], marks: _Marks) -> dict[str, FillIn]:
    fills: dict[str, FillIn] = {}
    for line in lines:
        if line.slot in fills or line.part not in {"fill", "pair"}:
            continue
        if line.part == "pair":
            fills[line.slot] = _pair(sheet, lines, line)
            continue
        entries: dict[str, list[Line]] = {}
        for other in lines:
            if (other.part, other.slot) == ("fill", line.slot):
                entries.setdefault(other.id, []).append(other)
        made = [_entry(sheet, name, own, marks) for name, own in entries.items()]
        kept = tuple(entry for entry in made if entry.forms)
        fills[line.slot] = ListedFillIn(entries=kept, place=sheet.place(line.texts[0]))
    return fills


def _pair(sheet: Sheet, lines: Sequence[Line], line: Line) -> PairFillIn:
    found = _values(sheet, lines, "pair", line.slot)
    return PairFillIn(
        of=_listed(sheet, found.get("of")),
        named=(found["named"].text.strip() or None) if "named" in found else None,
        ordered=_flag(sheet, found.get("ordered"), True),
        place=sheet.place(line.texts[0]),
    )


def _entry(sheet: Sheet, name: str, rows: Sequence[Line], marks: _Marks) -> Entry:
    """Return a fill-in: its rows are its aligned forms, in their order; each column of texts is a variant."""
    by_variant: dict[int, list[tuple[Cell, str]]] = {}
    whens: Mapping[int, Condition] = {}
    for position, row in enumerate(rows):
        found = _variants(sheet, row)
        if position == 0:
            whens = {number: when for number, _, _, when in found}
        for number, cell, text, when in found:
            if position and when and when != whens.get(number):
                sheet.fault("only the first form of a fill-in can have a condition", cell.line, cell.column)
            by_variant.setdefault(number, []).append((cell, text))
    forms = []
    for number, cells in by_variant.items():
        texts = tuple(text for _, text in cells)
        form = Form(texts=texts, when=whens.get(number, {}), place=sheet.place(cells[0][0]))
        marks.places |= {
            (id(form), index): marks.mark(cell, rows[0].whens[number])
            for index, (cell, _) in enumerate(cells)
        }
        forms.append(form)
    return Entry(id=name, forms=tuple(forms))
