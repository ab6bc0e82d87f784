"""Loads suites: shipped ones, suite folders (``suite.yaml``, ``languages/xx.yaml``) and released template sheets."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from pydantic import ValidationError

from harness import Problem, SpecError, UnknownNameError, UsageError
from harness.specs import Document, read_yaml, validate_document
from harness_checklist.suites.checking import did_you_mean, faults_of
from harness_checklist.suites.suite import (
    FillIn,
    LanguageSuite,
    ListedFillIn,
    Names,
    SourcePlace,
    Suite,
    SuiteHead,
    TestTemplate,
)


def shipped_suites() -> dict[str, Traversable]:
    """Return the folders of the suites that ship with the harness, by name."""
    folder = files("harness_checklist") / "suites"
    return {item.name: item for item in folder.iterdir() if (item / "suite.yaml").is_file()}


def find_suite(name_or_path: str, languages: Collection[str] | None = None) -> Suite:
    """Return a suite by the name of a shipped one, a suite folder, or a released ``checklist_templates.tsv``.

    With `languages`, a folder is read for these alone. Raises `UnknownNameError`, `SpecError`, `UsageError`.
    """
    path = Path(name_or_path)
    if path.suffix == ".tsv":
        # Imported here so that a suite folder is read without the reader of sheets.
        from harness_checklist.released.importer import read_released

        return read_released(path)
    shipped = shipped_suites()
    if path.is_dir():
        return load_suite(path, languages)
    if name_or_path in shipped:
        return load_suite(shipped[name_or_path], languages)
    if path.exists():
        raise UsageError(f"{name_or_path!r} is no suite: expected a folder with suite.yaml, or a .tsv.")
    if len(path.parts) > 1:
        names = ", ".join(sorted(shipped))
        raise UsageError(f"There is no suite folder {name_or_path!r}.", hint=f"Shipped suites: {names}.")
    raise UnknownNameError("suite", name_or_path, shipped, hint="A suite folder or a .tsv also works.")


def load_suite(path: Path | Traversable, languages: Collection[str] | None = None) -> Suite:
    """Return the suite in a folder, or only some of its languages.

    Raises `SpecError` with all faults of a file and their lines (of several files, where several have faults),
    `UnknownNameError` for an unknown language, `UsageError` where there is no suite.
    """
    declared = path / "suite.yaml"
    if not declared.is_file():
        raise UsageError(f"The folder {str(path)!r} is no suite: it has no suite.yaml.")
    head = validate_document(SuiteHead, _document(declared))
    folder = path / "languages"
    file_names = [item.name for item in folder.iterdir()] if folder.is_dir() else []
    codes = sorted(name.removesuffix(".yaml") for name in file_names if name.endswith(".yaml"))
    for code in languages or ():
        if code not in codes:
            raise UnknownNameError(f"language of suite {head.name!r}", code, codes)
    loaded: dict[str, LanguageSuite] = {}
    faulty: list[SpecError] = []
    for code in codes if languages is None else [code for code in codes if code in languages]:
        try:
            document = _document(folder / f"{code}.yaml")
            loaded[code] = read_language(document, head, code, lambda other: _own_names(folder, other))
        except SpecError as error:
            faulty.append(error)
    if faulty:
        problems = [Problem(message=error.message) for error in faulty]
        raise faulty[0] if len(faulty) == 1 else SpecError(str(path), problems)
    return Suite(**dict(head), languages=loaded)


def _document(file: Path | Traversable) -> Document:
    try:
        return read_yaml(file.read_text(encoding="utf-8"), str(file))
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SpecError(str(file), [Problem(message="the file is not UTF-8 text", line=line)]) from error


def _own_names(folder: Path | Traversable, code: str) -> Names | None:
    """Return the names in the file of another language; None where it has none of its own."""
    file = folder / f"{code}.yaml"
    try:
        names = Names.model_validate_json(json.dumps(_document(file).data.get("names")))
    except (OSError, SpecError, ValidationError):
        return None  # faults of that file are reported when it is read itself
    return names if names.lender is None else None


def read_language(
    document: Document, head: SuiteHead, code: str, lend: Callable[[str], Names | None]
) -> LanguageSuite:
    """Return the templates of one language, all with their places; its tests are in the order of the suite.

    Args:
        document: A language file, or another document of its shape.
        head: The suite.
        code: The language that is expected.
        lend: Language -> its own names, for ``names: {from: LANGUAGE}``.

    Raises `SpecError` with all faults: those of keys and values, or else those of the templates.
    """
    spoken = validate_document(LanguageSuite, document)
    problems: list[Problem] = []

    def fault(message: str, *path: str) -> None:
        problems.append(Problem(message=message, line=document.line_of(path), key=".".join(path)))

    if spoken.language != code:
        fault(f"expected the language {code!r} after the name of the file", "language")
    if not spoken.tests:
        fault("no tests are given", "tests")
    for name in spoken.tests.keys() - head.tests.keys():
        fault(f"suite.yaml declares no test {name!r}{did_you_mean(name, head.tests)}", "tests", name)
    names = spoken.names
    if names.lender is not None:
        lent = None if names.lender == code else lend(names.lender)
        if lent is None:
            fault(f"there are no names of {names.lender!r} to borrow", "names", "from")
        if names != Names.model_validate({"from": names.lender}):
            fault("names are borrowed with 'from' alone, or listed", "names")
        names = (lent or names).model_copy(update={"borrowed": names.lender, "lender": None})
    fills = {name: _placed(name, test, document) for name, test in spoken.tests.items()}
    tests: dict[str, TestTemplate] = {}
    for name in head.tests:
        if name in spoken.tests:
            test = spoken.tests[name]
            if test.uses is not None and (test.uses == name or not fills.get(test.uses)):
                fault(f"no test {test.uses!r} whose fill-ins could be used", "tests", name, "fill", "use")
            merged = {**fills.get(test.uses or "", {}), **fills[name]}
            tests[name] = test.model_copy(update={"fills": merged, "uses": None})
            for template_fault in faults_of(tests[name], names):
                line = template_fault.place.line if template_fault.place else None
                problems.append(Problem(message=template_fault.message, line=line, key=f"tests.{name}"))
    if problems:
        raise SpecError(document.source, sorted(dict.fromkeys(problems), key=lambda one: one.line or 0))
    language_suite = spoken.model_copy(update={"names": names, "tests": tests})
    return language_suite.at(SourcePlace(document.source, 1))


def _placed(name: str, test: TestTemplate, document: Document) -> dict[str, FillIn]:
    """Note the places of a test and of its parts; return its own fill-ins."""

    def place(*path: str | int) -> SourcePlace:
        return SourcePlace(document.source, document.line_of(("tests", name, *path)))

    test.at(place())
    for number, context in enumerate(test.contexts):
        context.at(place("contexts", number))
    for number, question in enumerate(test.questions):
        question.at(place("questions", number))
    for slot, fill in test.fills.items():
        fill.at(place("fill", slot))
        if isinstance(fill, ListedFillIn):
            for entry in fill.entries:
                for number, form in enumerate(entry.forms):
                    form.at(place("fill", slot, entry.id, number))
    return test.fills
