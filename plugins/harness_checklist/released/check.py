"""Checks of the released sheet, of its names, and of the templates made from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from harness import Problem, near_names
from harness_checklist.released.product import english_id
from harness_checklist.released.rule import RELEASED_TESTS, ReleasedTest, separator
from harness_checklist.released.sheet import TEMPLATE_FIELDS, Cell, Sheet, SheetTest
from harness_checklist.suites.suite import ListedFillIn, TestTemplate

__all__ = [
    "SLOT_OF_FIELD",
    "known_words",
    "names_faults",
    "placeholder_words",
    "sheet_faults",
    "template_faults",
]

SLOT_OF_FIELD: Final = {"state": "s"}
"""Where the templates call a fill-in otherwise than the sheet."""
_NAMES: Final = ("first_name", "last_name")
_PAIR: Final = ("p1", "v1", "p2", "v2")
_ALIGNED: Final = ("adj", "obj")
_BRACES: Final = re.compile(r"\{[^{}]*\}|[{}]")
_PLACEHOLDER: Final = re.compile(
    r"\{(?:a:)?(?P<slot>[a-z_]+)(?P<number>[0-9]*)(?:\[(?P<form>[0-9])\])?(?:\.(?P<attribute>\w+))?\}"
)


def sheet_faults(sheet: Sheet) -> list[Problem]:
    """Return the faults of the tests' cells."""
    faults = []
    if not sheet.tests:
        faults.append(Problem(message="there is no test: a row 'Name' opens each", line=1))
    for test in RELEASED_TESTS:
        if test.name in sheet.tests:
            rows = sheet.tests[test.name]
            if not test.fields and _FIRST_ANIMALS.name not in sheet.tests:
                message = f"{test.name!r} takes its fill-ins from the test {_FIRST_ANIMALS.name!r}, which is missing"
                faults.append(Problem(message=message, line=rows.line))
                continue
            known = known_words(sheet, test)
            for language in sheet.languages:
                faults += _missing(rows, language, test)
                faults += _templates(rows, language, _fields(test))
                faults += _forms(rows, language)
                faults += _conditions(rows, language, known)
    return faults


_FIRST_ANIMALS: Final = next(test for test in RELEASED_TESTS if test.id == "animal_vs_vehicles")


def _fields(test: ReleasedTest) -> tuple[str, ...]:
    return test.fields or _FIRST_ANIMALS.fields


def _missing(rows: SheetTest, language: str, test: ReleasedTest) -> Iterator[Problem]:
    """Yield rows without a text in the language, and fill-ins without a row."""
    for field in (*TEMPLATE_FIELDS, *test.fields):
        said: dict[int, list[Cell]] = {}
        for cell in rows.of(language, field):
            said.setdefault(cell.place.line or 0, []).append(cell)
        if not said and language == "en" and field in test.fields:
            yield Problem(message=f"the test {rows.name!r} has no values of {field!r}", line=rows.line)
        for cells in said.values():
            if not any(cell.text.strip() for cell in cells):
                yield _fault(cells[0], f"{field!r} is empty in {language!r}")
            for cell in cells:
                if cell.placeholders and not cell.text.strip() and any(other.text for other in cells):
                    yield _fault(cell, f"{field!r} has placeholders in {language!r}, but no text")


def _fault(cell: Cell, message: str, shift: int = 0) -> Problem:
    return Problem(message=message, line=cell.place.line, key=f"column {(cell.place.column or 0) + shift}")


def _templates(rows: SheetTest, language: str, fields: Iterable[str]) -> Iterator[Problem]:
    """Yield placeholders that name nothing, and braces that do not close."""
    slots = {SLOT_OF_FIELD.get(field, field) for field in fields}
    if "property" in slots:
        slots.add("p")
    for kind in TEMPLATE_FIELDS:
        for cell in rows.of(language, kind):
            for found in _BRACES.findall(cell.text):
                match = _PLACEHOLDER.fullmatch(found)
                if match is None:
                    yield _fault(
                        cell, f"{found!r} in {cell.text!r} is not a placeholder such as '{{first_name}}'"
                    )
                elif match["slot"] not in (*_NAMES, *slots):
                    near = near_names(match["slot"], (*_NAMES, *slots), limit=1)
                    meant = f"; did you mean '{{{near[0]}}}'?" if near else ""
                    yield _fault(cell, f"{found!r} names no fill-in of the test{meant}")
                elif match["slot"] != "p" and match["attribute"] is not None:
                    yield _fault(cell, f"{found!r} has no attributes; write '{{{match['slot']}}}'")
                elif match["slot"] == "p" and match["attribute"] not in _PAIR:
                    yield _fault(cell, f"{found!r} has to be one of {{p.p1}}, {{p.v1}}, {{p.p2}}, {{p.v2}}")


def _forms(rows: SheetTest, language: str) -> Iterator[Problem]:
    """Yield fill-ins that do not split into as many forms as the templates name."""
    between = separator(language)
    templates = [cell.text for kind in TEMPLATE_FIELDS for cell in rows.of(language, kind)]
    for field in _ALIGNED:
        named = [
            int(form) for text in templates for form in re.findall(rf"\{{(?:a:)?{field}\[([0-9])\]\}}", text)
        ]
        needed = max(named, default=0) + 1
        for cell in rows.filled(language, field):
            forms = cell.text.split(between)
            if len(forms) < needed or not all(form.strip() for form in forms[:needed]):
                yield _fault(
                    cell,
                    f"{cell.text!r} does not split at {between!r} into the {needed} forms that the templates name",
                )


def known_words(sheet: Sheet, test: ReleasedTest) -> frozenset[str]:
    """Return what the placeholders of a test may name: English fill-ins, each of their forms, fields, and templates."""
    words = set(test.fields)
    for rows in sheet.tests.values():
        words |= {cell.text.strip() for kind in TEMPLATE_FIELDS for cell in rows.of("en", kind)}
    for field in _fields(test):
        for cell in sheet.tests[test.name if test.fields else _FIRST_ANIMALS.name].of("en", field):
            forms = [form.strip() for form in cell.text.split(", ")]
            words |= {cell.text.strip(), english_id(field, cell.text), *forms}
            words |= {form.split(" ")[-1] for form in forms}
    return frozenset(words)


def placeholder_words(placeholders: str, known: Iterable[str]) -> list[str]:
    """Return the words that a cell of placeholders names; some cells hold whole templates."""
    templates = sorted((word for word in known if "{first_name" in word), key=len, reverse=True)
    found = []
    for template in templates:
        if template in placeholders:
            found.append(template)
            placeholders = placeholders.replace(template, "")
    return found + [word for part in placeholders.split(",") if (word := part.strip(" ."))]


def _conditions(rows: SheetTest, language: str, known: frozenset[str]) -> Iterator[Problem]:
    """Yield variants whose placeholders name nothing at all: they would never apply."""
    for field, cells in rows.cells.get(language, {}).items():
        for cell in cells:
            if not cell.placeholders.strip() or (field == "Answer" and "{" in cell.placeholders):
                continue
            words = placeholder_words(cell.placeholders, known)
            if not any(word in known for word in words):
                near = [name for word in words for name in near_names(word, known, limit=1)]
                meant = f"; did you mean {near[0]!r}?" if near else ""
                yield _fault(
                    cell, f"the placeholders {cell.placeholders!r} name no English fill-in{meant}", 1
                )


def names_faults(raw: object) -> list[Problem]:
    """Return the faults of a file of names: ``{language: {"male": [...], "female": [...], "last": [...]}}``."""
    if not isinstance(raw, dict):
        return [Problem(message=f"expected an object of languages, found {type(raw).__name__}")]
    faults = (
        [] if "en" in raw else [Problem(message="there are no names of 'en', which other languages borrow")]
    )
    for language, kinds in raw.items():
        if not isinstance(kinds, dict):
            faults.append(Problem(message=f"expected an object of lists, found {kinds!r}", key=language))
            continue
        for kind in ("male", "female", "last"):
            names = kinds.get(kind)
            if not isinstance(names, list) or not all(
                isinstance(name, str) and name.strip() for name in names
            ):
                faults.append(Problem(message="expected a list of names", key=f"{language}.{kind}"))
            elif not names:
                faults.append(Problem(message="there is no name", key=f"{language}.{kind}"))
    return faults


def template_faults(template: TestTemplate, rows: SheetTest, language: str) -> Iterator[Problem]:
    """Yield the parts of a template that stay empty because the placeholders of their cells match nothing."""
    empty = {"Context": not template.contexts, "Question": not template.questions}
    for slot, fill in template.fills.items():
        empty[slot] = isinstance(fill, ListedFillIn) and not fill.entries
    for what, is_empty in empty.items():
        if is_empty:
            message = (
                f"no {what!r} of {language!r} can be drawn: the released generator takes those alone whose "
                "placeholders name English fill-ins here"
            )
            yield Problem(message=message, line=rows.line)
