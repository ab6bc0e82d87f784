"""Reads what was released: the templates of XTREME-R (MultiCheckList, Ruder et al., 2021), and cases of CheckList.

The suite of the templates has the structure that the released generator gives them, with its quirks: nothing is
repaired. `harness checklist lint` finds what a reader of the sheet would not expect.

A case of CheckList (Ribeiro et al., 2020) is a JSON line: ``{"test": name, "case": number, "examples": [{"context",
"question", "answer"}]}``, and where they are given ``"lang"`` (English otherwise), ``"capability"`` and ``"type"``.
What CheckList's own `to_raw_file` writes cannot be read: its ``squad`` format has neither answers nor tests, nor does
it say which examples are one case.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from harness import DataError, MissingDataError, Problem, SpecError
from harness.languages import text_scripts
from harness.specs import Code, Document, SpecModel, validate_document
from harness_checklist.case import Case, CaseExample, raise_faults, read_lines, read_text
from harness_checklist.checking import faults_of
from harness_checklist.released_sheet import FIRST_ANIMALS, RULES, Sheet, read_sheet_rows, released_profile
from harness_checklist.released_template import BUILDERS
from harness_checklist.suite import Filled, LanguageSuite, Names, SourcePlace, Suite

NAMES_FILE: Final = "names_by_language.json"
"""The file of names, searched next to the sheet."""
_RELEASED: Final = {test.name: test.id for test in RULES.suite.tests.values()}


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


class _Example(SpecModel):
    context: Filled
    question: Filled
    answer: Filled


class _CaseLine(SpecModel):
    test: Filled
    case: Annotated[int, Field(ge=0)]
    examples: tuple[_Example, ...]
    lang: Code = "en"
    capability: Filled | None = None
    type: Literal["MFT"] = "MFT"
    """Only minimum functionality tests have answers to compare."""


_LINE: Final = TypeAdapter(_CaseLine)


def slug(name: str) -> str:
    """Return the id of a test with this name: ``Basic coref, he / she`` is ``basic_coref_he_she``.

    The six tests of MultiCheckList, which are CheckList's, have the ids that they have there.
    """
    if name in _RELEASED:
        return _RELEASED[name]
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "_", plain).strip("_")


def read_checklist_json(path: Path) -> list[Case]:
    """Return the cases of a file of JSON lines in their order; the id of a case is its test's and its number.

    Raises `DataError` for a file that cannot be read or is what `to_raw_file` writes, `SpecError` with the faults of
    all lines.
    """
    text = read_text(path)
    head = text.lstrip()[:4096]
    if re.match(r'\{\s*"(version|data)"\s*:', head) and '"paragraphs"' in head:
        raise DataError(
            f"{str(path)!r} is CheckList's squad format, which holds neither answers nor tests.",
            hint="Write one JSON object per case, with test, case and examples (context, question, answer).",
        )
    faults: list[Problem] = []
    cases: list[Case] = []
    first: dict[tuple[str, str], int] = {}
    names: dict[str, str] = {}
    for number, line in read_lines(text, _LINE, faults):
        case = _case(line)
        messages = []
        if not case.test:
            messages.append(
                f"the test {line.test!r} has no Latin letter or digit, of which its id could be made"
            )
        elif names.setdefault(case.test, line.test) != line.test:
            messages.append(
                f"the tests {line.test!r} and {names[case.test]!r} would both have the id {case.test!r}"
            )
        elif (before := first.setdefault((case.language, case.id), number)) != number:
            messages.append(f"the case {case.id!r} in {case.language!r} is also in line {before}")
        faults += [Problem(message=message, line=number) for message in messages]
        cases.append(case)
    raise_faults(path, faults)
    if not cases:
        raise DataError(f"{str(path)!r} holds no test cases.")
    return cases


def _case(line: _CaseLine) -> Case:
    test = slug(line.test)
    name = f"{test}-{line.case}"
    return Case(
        id=name,
        test=test,
        language=line.lang,
        examples=tuple(
            CaseExample(
                id=f"{name}/{number}",
                context=example.context,
                question=example.question,
                answer=example.answer,
            )
            for number, example in enumerate(line.examples, 1)
        ),
        capability=line.capability or "",
        normalise=released_profile(line.lang),
    )
