"""Suites on disk: shipped ones, suite folders (``suite.yaml``, ``languages/xx.yaml``) and released template sheets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from harness import Problem, SpecError, UnknownNameError, UsageError
from harness.specs import Document, read_yaml, validate_document
from harness.storage import write_atomically
from harness_checklist.checking import did_you_mean, faults_of
from harness_checklist.suite import (
    Condition,
    FillIn,
    Form,
    LanguageSuite,
    ListedFillIn,
    Names,
    PairFillIn,
    Profile,
    SourcePlace,
    Suite,
    SuiteHead,
    TestTemplate,
)

_PLAIN = re.compile(r"[^\W\d_](?:[\w'’()/.-]|[ ](?=[\w('’]))*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that some YAML readers do not read as texts."""


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
        from harness_checklist.released import read_released

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


try:
    from yaml import CSafeDumper as _SafeDumper
except ImportError:  # a PyYAML built without libyaml is slower but writes the same
    from yaml import SafeDumper as _SafeDumper  # type: ignore[assignment]


class _Dumper(_SafeDumper):
    """Writes a text plainly where every reader takes it for this text, else in double quotes."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out: a person reads these files."""
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _represent_text)


def yaml_text(data: Mapping[str, Any], *, flow: bool | None = None) -> str:
    """Return a mapping as YAML, every text on one line; with `flow` all of it in one line."""
    text: str = yaml.dump(
        data, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=2**30, default_flow_style=flow
    )
    return text


def dump_suite(suite: Suite, folder: Path) -> None:
    """Write suite.yaml and languages/xx.yaml into a folder.

    Reading it gives the same suite up to places. Raises `StorageError`, and `UsageError` for a folder that holds
    other languages than the suite.
    """
    (folder / "languages").mkdir(parents=True, exist_ok=True)
    foreign = sorted({path.stem for path in (folder / "languages").glob("*.yaml")} - suite.languages.keys())
    if foreign:
        raise UsageError(
            f"{str(folder)!r} holds languages that are not in suite {suite.name!r}: {', '.join(foreign)}.",
            hint="Choose another folder, or remove them.",
        )
    for code, spoken in suite.languages.items():
        lender = suite.languages.get(spoken.names.borrowed or "")
        data = language_data(spoken)
        if (
            lender is not None
            and lender.names.model_copy(update={"borrowed": lender.language}) == spoken.names
        ):
            data["names"] = {"from": lender.language}
        write_atomically(folder / "languages" / f"{code}.yaml", yaml_text(data))
    head = {"suite": suite.name, **suite.model_dump(mode="json", exclude={"name", "languages", "tests"})}
    tests = {name: test.model_dump(exclude={"id"}) for name, test in suite.tests.items()}
    write_atomically(folder / "suite.yaml", yaml_text({**head, "tests": tests}))


def language_data(spoken: LanguageSuite) -> dict[str, Any]:
    """Return one language in the shape of its file."""
    data: dict[str, Any] = {"language": spoken.language}
    if spoken.names != Names():
        data["names"] = spoken.names.model_dump(mode="json", exclude_defaults=True)
    if spoken.profile != Profile():
        data["normalise"] = spoken.profile.model_dump(mode="json", exclude_defaults=True)
    data["tests"] = tests = {}
    dumped: dict[str, dict[str, FillIn]] = {}
    for name, test in spoken.tests.items():
        same = next(
            (earlier for earlier, fills in dumped.items() if test.fills and fills == test.fills), None
        )
        tests[name] = _test(test, same)
        if same is None:
            dumped[name] = test.fills
    return data


def _test(test: TestTemplate, same: str | None) -> dict[str, Any]:
    data: dict[str, Any] = test.model_dump(mode="json", include={"names", "balance"}, exclude_defaults=True)
    data["contexts"] = [
        {"text": context.text, **_when(context.when)} if context.when else context.text
        for context in test.contexts
    ]
    data["questions"] = [
        {"ask": question.ask, "answer": question.answer, **_when(question.when)}
        for question in test.questions
    ]
    if test.fills:
        data["fill"] = {"use": same} if same else {name: _fill(fill) for name, fill in test.fills.items()}
    if test.zips:
        data["zip"] = [list(members) for members in test.zips]
    return data


def plain_condition(when: Condition) -> dict[str, list[str]]:
    """Return a condition with its ids in order."""
    return {key: sorted(ids) for key, ids in when.items()}


def _when(when: Condition) -> dict[str, Any]:
    return {"when": plain_condition(when)} if when else {}


def _fill(fill: FillIn) -> dict[str, Any]:
    if isinstance(fill, PairFillIn):
        return {
            "pairs": list(fill.of),
            **fill.model_dump(include={"named", "ordered"}, exclude_defaults=True),
        }
    return {
        name: _texts(forms[0]) if len(forms) == 1 and not forms[0].when else [_form(form) for form in forms]
        for name, forms in fill.values.items()
    }


def _texts(form: Form) -> str | list[str]:
    return form.texts[0] if len(form.texts) == 1 else list(form.texts)


def _form(form: Form) -> dict[str, Any]:
    return {"form": _texts(form), **_when(form.when)}
