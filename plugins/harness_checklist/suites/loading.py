"""Loads a suite folder: ``suite.yaml``, ``languages/xx.yaml``, ``names.json``. All faults of a file at once."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, cast

import yaml

from harness import Problem, SpecError, UnknownNameError, UsageError
from harness_checklist.suites.checking import faults_of
from harness_checklist.suites.node import Reader
from harness_checklist.suites.profile import Match, Profile
from harness_checklist.suites.reading import TestReader
from harness_checklist.suites.suite import LanguageSuite, Names, Suite, TestDeclaration, TestType

__all__ = ["load_language", "load_suite"]

CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_SUITE_KEYS = ("suite", "version", "description", "license", "citation", "source_language", "tests")
_TEST_KEYS = ("name", "title", "capability", "type", "description")
_NAME_LISTS = ("male", "female", "last")


def load_suite(path: Path | Traversable, languages: Collection[str] | None = None) -> Suite:
    """Return the suite in a folder, or only some of its languages.

    Raises `SpecError` with all faults of a file and their lines (of several files, where several have faults),
    `UnknownNameError` for an unknown language, `UsageError` where there is no suite.
    """
    declared = path / "suite.yaml"
    if not declared.is_file():
        raise UsageError(f"The folder {str(path)!r} is no suite: it has no suite.yaml.")
    suite = _declaration(_read(declared), str(declared))
    folder = path / "languages"
    found = [item.name for item in folder.iterdir()] if folder.is_dir() else []
    codes = sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml"))
    for code in languages or ():
        if code not in codes:
            raise UnknownNameError(f"language of suite {suite['name']!r}", code, codes)
    tests = {item.id: item for item in suite["tests"]}
    names = _NameFile(path)
    loaded: dict[str, LanguageSuite] = {}
    faulty: list[SpecError] = []
    for code in codes if languages is None else [code for code in codes if code in languages]:
        file = folder / f"{code}.yaml"
        try:
            loaded[code] = load_language(_read(file), str(file), code, tests, names)
        except SpecError as error:
            faulty.append(error)
    if faulty:
        raise _together(str(path), faulty)
    return Suite(languages=loaded, **suite)


def _read(file: Path | Traversable) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SpecError(str(file), [Problem(message="the file is not UTF-8 text", line=line)]) from error


def _together(source: str, errors: list[SpecError]) -> SpecError:
    if len(errors) == 1:
        return errors[0]
    problems = []
    for error in errors:
        for problem in error.problems:
            where = error.source if problem.line is None else f"{error.source}:{problem.line}"
            key = f"{where}: {problem.key}" if problem.key else where
            problems.append(Problem(message=problem.message, key=key))
    return SpecError(source, problems)


def _declaration(text: str, source: str) -> dict[str, Any]:
    """Return the fields of `Suite` that suite.yaml holds."""
    reader = Reader(source)
    root = reader.compose(text)
    keys = {} if root is None else reader.mapping(root, "", _SUITE_KEYS, ("suite", "version", "tests"))
    fields: dict[str, Any] = {
        name: reader.text(keys[name], name) if name in keys else ""
        for name in ("description", "license", "citation")
    }
    fields["name"] = reader.text(keys["suite"], "suite") if "suite" in keys else ""
    fields["version"] = reader.count(keys["version"], "version") if "version" in keys else 1
    if "source_language" in keys:
        fields["source_language"] = reader.text(keys["source_language"], "source_language")
    listed = reader.mapping(keys["tests"], "tests") if "tests" in keys else {}
    fields["tests"] = tuple(_declared(reader, name, node) for name, node in listed.items())
    if "tests" in keys and not listed:
        reader.fault("no tests are declared", keys["tests"], "tests")
    reader.finish()
    return fields


def _declared(reader: Reader, name: str, node: yaml.Node) -> TestDeclaration:
    key = f"tests.{name}"
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        reader.fault("a test id has small letters, digits and _ only", node, key)
    found = reader.mapping(node, key, _TEST_KEYS, ("name", "capability"))
    texts = {part: reader.text(value, f"{key}.{part}") for part, value in found.items() if part != "type"}
    types = ("MFT", "INV", "DIR")
    kind = reader.choice(found["type"], f"{key}.type", types) if "type" in found else "MFT"
    return TestDeclaration(
        id=name,
        name=texts.get("name", ""),
        title=texts.get("title", texts.get("name", "")),
        capability=texts.get("capability", ""),
        type=cast("TestType", kind),
        description=texts.get("description", ""),
    )


class _NameFile:
    """``names.json`` of a suite folder, read when it is first needed, and the names in other languages' files."""

    def __init__(self, path: Path | Traversable) -> None:
        self._folder = path
        self._names: dict[str, Names] | None = None

    def of(self, code: str) -> Names | None:
        if self._names is None:
            self._names = self._read()
        return self._names.get(code)

    def borrowed(self, code: str) -> Names | None:
        """Return the names of one language from names.json, or else from its own file."""
        found = self.of(code)
        file = self._folder / "languages" / f"{code}.yaml"
        if found is not None or not file.is_file():
            return found
        reader = Reader(str(file))
        root = reader.compose(_read(file))
        keys = reader.mapping(root, "") if root is not None else {}
        if not isinstance(keys.get("names"), yaml.MappingNode):
            return None
        own = reader.mapping(keys["names"], "names")
        return None if "from" in own else _inline(reader, own)

    def _read(self) -> dict[str, Names]:
        file = self._folder / "names.json"
        if not file.is_file():
            return {}
        try:
            found = json.loads(_read(file))
        except json.JSONDecodeError as error:
            raise SpecError(str(file), [Problem(message=error.msg, line=error.lineno)]) from error
        faults = list(_name_faults(found))
        if faults:
            raise SpecError(str(file), faults)
        return {code: _listed(entry) for code, entry in found.items()}


def _listed(entry: dict[str, Any]) -> Names:
    lists = {key: tuple(entry.get(key, ())) for key in _NAME_LISTS}
    return Names(
        script=entry.get("script", ""), male=lists["male"], female=lists["female"], last=lists["last"]
    )


def _name_faults(found: Any) -> list[Problem]:
    if not isinstance(found, dict):
        return [Problem(message="expected an object: language -> its names")]
    problems = []
    for code, entry in found.items():
        if not isinstance(entry, dict):
            problems.append(Problem(key=code, message="expected an object with male, female and last"))
            continue
        for key, value in entry.items():
            if key == "script" and isinstance(value, str):
                continue
            good = isinstance(value, list) and all(isinstance(name, str) and name.strip() for name in value)
            if key not in _NAME_LISTS or not good:
                expected = "expected script, or lists of names that are not empty: male, female, last"
                problems.append(Problem(key=f"{code}.{key}", message=expected))
    return problems


def _inline(reader: Reader, found: dict[str, yaml.Node]) -> Names:
    lists = {key: reader.texts(found[key], f"names.{key}") for key in _NAME_LISTS if key in found}
    for key, names in lists.items():
        if not all(name.strip() for name in names):
            reader.fault("a name is empty", found[key], f"names.{key}")
    script = reader.text(found["script"], "names.script") if "script" in found else ""
    borrowed = reader.text(found["borrowed"], "names.borrowed") if "borrowed" in found else None
    male, female, last = (lists.get(key, ()) for key in _NAME_LISTS)
    return Names(script=script, borrowed=borrowed, male=male, female=female, last=last)


def load_language(
    text: str, source: str, code: str, declared: Collection[str], names: _NameFile
) -> LanguageSuite:
    """Return the templates of one language; raises `SpecError` with all faults of the file."""
    reader = Reader(source)
    root = reader.compose(text)
    known = ("language", "names", "normalise", "tests")
    keys = {} if root is None else reader.mapping(root, "", known, ("language", "tests"))
    given = reader.text(keys["language"], "language") if "language" in keys else code
    if given != code or not CODE.fullmatch(code):
        reader.fault(
            f"expected the language {code!r} after the name of the file", keys.get("language"), "language"
        )
    found = _names(reader, keys["names"], code, names) if "names" in keys else Names()
    profile = _profile(reader, keys["normalise"]) if "normalise" in keys else Profile()
    tests = TestReader(reader)
    templates = tests.read(keys["tests"], declared) if "tests" in keys else {}
    for name, template in templates.items():
        if name not in tests.faulty:
            whole = tests.places[id(template), ""]
            found_faults = faults_of(template, found, tests.places)
            for fault in sorted(found_faults, key=lambda fault: (fault.place or whole).column or 0):
                reader.fault_at(fault.message, fault.place or whole, f"tests.{name}")
    reader.finish()
    place = reader.place(root) if root is not None else None
    return LanguageSuite(language=code, tests=templates, names=found, profile=profile, place=place)


def _names(reader: Reader, node: yaml.Node, code: str, names: _NameFile) -> Names:
    if isinstance(node, yaml.ScalarNode):
        reader.choice(node, "names", ("file",))
        found = names.of(code)
        if found is None:
            reader.fault(f"names.json has no names for {code!r}", node, "names")
        return found or Names()
    keys = reader.mapping(node, "names", ("script", "borrowed", "from", *_NAME_LISTS))
    if "from" not in keys:
        return _inline(reader, keys)
    lender = reader.text(keys["from"], "names.from")
    found = names.borrowed(lender) if CODE.fullmatch(lender) and lender != code else None
    if found is None:
        reader.fault(f"there are no names of {lender!r} to borrow", keys["from"], "names.from")
        return Names()
    if len(keys) > 1:
        reader.fault("names are borrowed with 'from' alone, or listed", node, "names")
    return Names(male=found.male, female=found.female, last=found.last, script=found.script, borrowed=lender)


def _profile(reader: Reader, node: yaml.Node) -> Profile:
    keys = reader.mapping(node, "normalise", ("articles", "match", "strip", "casefold"))
    plain = Profile()
    matches = ("word", "start", "anywhere")
    return Profile(
        articles=reader.texts(keys["articles"], "normalise.articles") if "articles" in keys else (),
        match=cast("Match", reader.choice(keys["match"], "normalise.match", matches))
        if "match" in keys
        else "word",
        strip=reader.text(keys["strip"], "normalise.strip") if "strip" in keys else plain.strip,
        casefold=reader.flag(keys["casefold"], "normalise.casefold") if "casefold" in keys else False,
    )
