"""Reads the templates that were released with XTREME-R (MultiCheckList, Ruder et al., 2021) as a suite.

The suite has the structure that the released generator gives the templates, with its quirks: nothing is repaired.
`harness checklist lint` finds what a reader of the sheet would not expect.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from harness import DataError, MissingDataError, Problem, SpecError
from harness.languages import text_scripts
from harness.specs import Document, SpecModel, validate_document
from harness_checklist.generation.lines import raise_faults, read_text
from harness_checklist.released.rule import FIRST_ANIMALS, RULES, released_profile
from harness_checklist.released.sheet import Sheet, read_sheet_rows
from harness_checklist.released.template import BUILDERS
from harness_checklist.suites.checking import faults_of
from harness_checklist.suites.suite import LanguageSuite, Names, SourcePlace, Suite

NAMES_FILE: Final = "names_by_language.json"
"""The file of names, searched next to the sheet."""


def read_released(tsv: Path, names: Path | None = None) -> Suite:
    """Return the released templates (``checklist_templates.tsv``) as a suite.

    `names` is a file ``{language: {"male": [...], "female": [...], "last": [...]}}``; by default it is
    ``names_by_language.json`` next to the sheet. A language without names borrows the English ones.

    Raises `DataError` for a file that cannot be read, `SpecError` with all faults of the sheet or of the names.
    """
    sheet = read_sheet_rows(tsv)
    languages = _languages(sheet, _names(names or tsv.parent / NAMES_FILE, sheet.languages))
    tests = {
        name: RULES.suite.tests[name].model_copy(update={"capability": rows.capability})
        for name, rows in sheet.tests.items()
    }
    return Suite(**{**dict(RULES.suite), "tests": tests}, languages=languages)


def _languages(sheet: Sheet, names: Mapping[str, Names]) -> dict[str, LanguageSuite]:
    if FIRST_ANIMALS not in sheet.tests and any(not RULES.fields[name] for name in sheet.tests):
        message = f"a test takes its fill-ins from the test {FIRST_ANIMALS!r}, which is missing"
        raise SpecError(sheet.path, [Problem(message=message)])
    suites: dict[str, LanguageSuite] = {}
    faults: dict[Problem, None] = {}
    for language in sheet.languages:
        templates = {}
        for name, rows in sheet.tests.items():
            templates[name] = BUILDERS[name](sheet, rows, language).at(SourcePlace(sheet.path, rows.line))
            for fault in faults_of(templates[name], names[language]):
                location = fault.place or SourcePlace(sheet.path)
                key = f"column {location.column}" if location.column else language
                faults[Problem(message=fault.message, line=location.line, key=key)] = None
        suites[language] = LanguageSuite(
            language=language,
            tests=templates,
            names=names[language],
            profile=released_profile(language),
        ).at(SourcePlace(sheet.path))
    raise_faults(Path(sheet.path), list(faults))
    return suites


class _NamesFile(SpecModel):
    languages: dict[str, Names]


def _names(path: Path, languages: tuple[str, ...]) -> dict[str, Names]:
    if not path.is_file():
        raise MissingDataError(f"The names are not at {str(path)!r}; give their file with --names FILE.")
    try:
        raw = json.loads(read_text(path))
    except ValueError as error:
        raise DataError(f"{str(path)!r} cannot be read as JSON: {error}.") from error
    document = Document(source=str(path), data={"languages": raw}, text="")
    by_language = validate_document(_NamesFile, document).languages
    missing = [
        Problem(message="there is no name", key=f"{language}.{kind}")
        for language, names in by_language.items()
        for kind in ("male", "female", "last")
        if not getattr(names, kind)
    ]
    if "en" not in by_language:
        missing.append(Problem(message="there are no names of 'en', which other languages borrow"))
    raise_faults(path, missing)
    for language, names in by_language.items():
        script = text_scripts([" ".join((*names.male, *names.female, *names.last))])[0] or ""
        by_language[language] = names.model_copy(update={"script": script})
    borrowed = by_language["en"].model_copy(update={"borrowed": "en"})
    return {language: by_language.get(language, borrowed) for language in languages}
