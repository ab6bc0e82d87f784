"""Reads test cases that CheckList made (Ribeiro et al., 2020) from JSON lines.

A line is a case: ``{"test": name, "case": number, "examples": [{"context", "question", "answer"}]}``, and where they
are given ``"lang"`` (English otherwise), ``"capability"`` and ``"type"``. What CheckList's own `to_raw_file` writes
cannot be read: its ``squad`` format has neither answers nor tests, nor does it say which examples are one case.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from harness import DataError, MissingDataError, Problem, SpecError, near_names
from harness_checklist.generation.case import Case, CaseExample
from harness_checklist.released.rule import RELEASED_TESTS

__all__ = ["read_checklist_json", "slug"]

_TEXTS: Final = ("test", "lang", "capability", "type")
_KEYS: Final = (*_TEXTS, "case", "examples")
_NEEDED: Final = ("test", "case", "examples")
_EXAMPLE: Final = ("context", "question", "answer")
_RELEASED: Final = {test.name: test.id for test in RELEASED_TESTS}
_CODE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


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
    faults: list[Problem] = []
    cases: list[Case] = []
    first: dict[tuple[str, str], int] = {}
    names: dict[str, str] = {}
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        found = _parsed(line)
        messages = [found] if isinstance(found, str) else list(_faults(found))
        if not messages and not isinstance(found, str):
            case = _case(found)
            messages = list(_clashes(case, found["test"], first, names, number))
            cases.append(case)
        faults += [Problem(message=message, line=number) for message in messages]
    if faults:
        raise SpecError(path, faults)
    if not cases:
        raise DataError(f"{str(path)!r} holds no test cases.")
    return cases


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise MissingDataError(f"There is no file {str(path)!r}.") from None
    except OSError as error:
        raise DataError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{str(path)!r} is not UTF-8 at byte {error.start}.") from error
    head = text.lstrip()[:4096]
    if re.match(r'\{\s*"(version|data)"\s*:', head) and '"paragraphs"' in head:
        raise DataError(
            f"{str(path)!r} is CheckList's squad format, which holds neither answers nor tests.",
            hint="Write one JSON object per case, with test, case and examples (context, question, answer).",
        )
    return text.split("\n")


def _parsed(line: str) -> dict[str, Any] | str:
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        return f"is no JSON at column {error.colno}: {error.msg}"
    if not isinstance(found, dict):
        return f"expected an object with {', '.join(_NEEDED)}, found {type(found).__name__}"
    return found


def _faults(found: Mapping[str, Any]) -> Iterator[str]:
    for key in _NEEDED:
        if key not in found:
            yield f"{key!r} is missing"
    for key in found:
        if key not in _KEYS:
            near = near_names(key, _KEYS, limit=1)
            yield f"unknown key {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")
    for key in _TEXTS:
        if key in found and not (isinstance(found[key], str) and found[key].strip()):
            yield f"{key!r} has to be a text, found {found[key]!r}"
    if isinstance(found.get("test"), str) and found["test"].strip() and not slug(found["test"]):
        yield f"the test {found['test']!r} has no Latin letter or digit, of which its id could be made"
    if isinstance(found.get("lang"), str) and not _CODE.fullmatch(found["lang"]):
        yield f"'lang' must be a language code such as 'de', found {found['lang']!r}"
    if found.get("type", "MFT") != "MFT" and isinstance(found.get("type"), str):
        yield f"'type' is {found['type']!r}, but only minimum functionality tests, 'MFT', have answers to compare"
    number = found.get("case", 0)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        yield f"'case' has to be a number from 0 on, found {number!r}"
    yield from _example_faults(found.get("examples", []))


def _example_faults(examples: object) -> Iterator[str]:
    if not isinstance(examples, list):
        yield f"'examples' has to be a list, found {type(examples).__name__}"
        return
    for position, example in enumerate(examples, 1):
        if not isinstance(example, dict):
            yield f"example {position}: expected an object, found {type(example).__name__}"
            continue
        for key in _EXAMPLE:
            if not isinstance(example.get(key), str) or not example[key].strip():
                yield f"example {position}: {key!r} has to be a text, found {example.get(key)!r}"
        for key in example.keys() - set(_EXAMPLE):
            yield f"example {position}: unknown key {key!r}"


def _clashes(
    case: Case, name: str, first: dict[tuple[str, str], int], names: dict[str, str], line: int
) -> Iterator[str]:
    before = first.setdefault((case.language, case.id), line)
    if before != line:
        yield f"the case {case.id!r} in {case.language!r} is also in line {before}"
    if names.setdefault(case.test, name) != name:
        yield f"the tests {name!r} and {names[case.test]!r} would both have the id {case.test!r}"


def _case(found: Mapping[str, Any]) -> Case:
    test = slug(found["test"])
    name = f"{test}-{found['case']}"
    return Case(
        id=name,
        test=test,
        language=found.get("lang", "en"),
        examples=tuple(
            CaseExample(
                id=f"{name}/{number}",
                context=example["context"],
                question=example["question"],
                answer=example["answer"],
            )
            for number, example in enumerate(found["examples"], 1)
        ),
        capability=found.get("capability", ""),
        type=found.get("type", "MFT"),
    )
