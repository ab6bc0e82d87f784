"""Reads the templates that were released with XTREME-R (MultiCheckList, Ruder et al., 2021) as a suite.

The suite has the structure that the released generator gives the templates, with its quirks: nothing is repaired.
`Imported.notices` lists what a reader of the sheet would not expect.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness import DataError, MissingDataError, Problem, SpecError
from harness.languages.scripts import text_scripts
from harness_checklist.released.check import names_faults, sheet_faults, template_faults
from harness_checklist.released.notice import sheet_notices
from harness_checklist.released.rule import RELEASED_TESTS, released_profile
from harness_checklist.released.sheet import Sheet, read_sheet_rows
from harness_checklist.released.template import BUILDERS
from harness_checklist.suites.suite import LanguageSuite, Names, Place, Suite, TestDeclaration

__all__ = ["Imported", "read_released"]

NAMES_FILE: Final = "names_by_language.json"
"""The file of names, searched next to the sheet."""
CITATION: Final = (
    "Sebastian Ruder et al. (2021): XTREME-R: Towards More Challenging and Nuanced Multilingual "
    "Evaluation, EMNLP 2021"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A suite that was read from elsewhere, and what its reader should know: one sentence each."""

    suite: Suite
    notices: tuple[str, ...] = ()


def read_released(tsv: Path, names: Path | None = None) -> Imported:
    """Return the released templates (``checklist_templates.tsv``) as a suite.

    `names` is a file ``{language: {"male": [...], "female": [...], "last": [...]}}``; by default it is
    ``names_by_language.json`` next to the sheet. A language without names borrows the English ones.

    Raises `DataError` for a file that cannot be read, `SpecError` with all faults of the sheet or of the names.
    """
    tests = {test.name: test.fields for test in RELEASED_TESTS}
    sheet = read_sheet_rows(tsv, tests)
    faults = [*sheet.faults, *sheet_faults(sheet)]
    if faults:
        raise SpecError(tsv, sorted(faults, key=lambda fault: fault.line or 0))
    by_language = _names(names if names is not None else tsv.parent / NAMES_FILE, sheet.languages)
    suite = Suite(
        name="multichecklist",
        version=1,
        description="The templates of MultiCheckList, as they were released.",
        license="Apache-2.0",
        citation=CITATION,
        tests=tuple(_declarations(sheet)),
        languages=_languages(sheet, by_language),
    )
    return Imported(suite=suite, notices=tuple(_notices(sheet, suite)))


def _declarations(sheet: Sheet) -> list[TestDeclaration]:
    return [
        TestDeclaration(
            id=test.id,
            name=test.name,
            title=test.title,
            capability=sheet.tests[test.name].capability,
            description=test.description,
        )
        for test in RELEASED_TESTS
        if test.name in sheet.tests
    ]


def _languages(sheet: Sheet, names: Mapping[str, Names]) -> dict[str, LanguageSuite]:
    found: dict[str, LanguageSuite] = {}
    faults: list[Problem] = []
    for language in sheet.languages:
        templates = {}
        for test in RELEASED_TESTS:
            if test.name in sheet.tests:
                rows = sheet.tests[test.name]
                templates[test.id] = BUILDERS[test.id](sheet, rows, language)
                faults += template_faults(templates[test.id], rows, language)
        found[language] = LanguageSuite(
            language=language,
            tests=templates,
            names=names[language],
            profile=released_profile(language),
            place=Place(path=sheet.path),
        )
    if faults:
        raise SpecError(sheet.path, sorted(faults, key=lambda fault: fault.line or 0))
    return found


def _names(path: Path, languages: tuple[str, ...]) -> dict[str, Names]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MissingDataError(
            f"The names are not at {str(path)!r}; give their file with --names FILE."
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(f"{str(path)!r} cannot be read as JSON: {error}.") from error
    faults = names_faults(raw)
    if faults:
        raise SpecError(path, faults)
    own = {language: _own_names(raw[language]) for language in languages if language in raw}
    english = _own_names(raw["en"])
    borrowed = Names(
        male=english.male,
        female=english.female,
        last=english.last,
        script=english.script,
        borrowed="en",
    )
    return {language: own.get(language, borrowed) for language in languages}


def _own_names(lists: Mapping[str, list[str]]) -> Names:
    male, female, last = (tuple(lists[kind]) for kind in ("male", "female", "last"))
    script = text_scripts([" ".join((*male, *female, *last))])[0]
    return Names(male=male, female=female, last=last, script=script or "")


def _notices(sheet: Sheet, suite: Suite) -> list[str]:
    borrowing = [language for language, spoken in suite.languages.items() if spoken.names.borrowed]
    found = []
    if borrowing:
        have = "1 language has no names and borrows"
        if len(borrowing) > 1:
            have = f"{len(borrowing)} languages have no names and borrow"
        found.append(f"{have} the English ones: {', '.join(sorted(borrowing))}.")
    return [*found, *sheet_notices(sheet, suite)]
