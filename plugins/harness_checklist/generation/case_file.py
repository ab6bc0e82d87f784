"""Cases as JSON lines, one case per line, as `harness_checklist.generation.case.Case` describes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any

from harness import DataError, MissingDataError
from harness.storage.files import write_atomically
from harness_checklist.generation.case import Case, CaseExample
from harness_checklist.suites.profile import Profile

__all__ = ["case_lines", "read_cases", "write_cases"]

_TEXTS = ("id", "test", "language", "capability", "type")
_EXAMPLE_KEYS = ("id", "context", "question", "answer")
_OPTIONAL = {"capability", "type", "fills", "normalise"}
_PROFILE_KEYS = frozenset({"articles", "match", "strip", "casefold"})
SHOWN = 20
"""How many faults an error lists."""


def write_cases(cases: Iterable[Case], path: Path, profile: Profile | None = None) -> None:
    """Write the cases, one per line; the file appears whole or not at all. Raises `StorageError`."""
    write_atomically(path, case_lines(cases, profile))


def case_lines(cases: Iterable[Case], profile: Profile | None = None) -> str:
    """Return the cases as JSON lines; ``normalise`` in each line says how answers are compared."""
    tail = "" if profile is None else f', "normalise": {json.dumps(asdict(profile), ensure_ascii=False)}'
    return "".join([_line(case, tail) for case in cases])


def _line(case: Case, tail: str) -> str:
    # By hand: this is several times as fast as dictionaries through json.dumps, with the same result.
    quote = encode_basestring
    fills = ", ".join([f"{quote(slot)}: {quote(value)}" for slot, value in case.fills.items()])
    examples = ", ".join(
        [
            f'{{"id": {quote(item.id)}, "context": {quote(item.context)}, '
            f'"question": {quote(item.question)}, "answer": {quote(item.answer)}}}'
            for item in case.examples
        ]
    )
    return (
        f'{{"id": {quote(case.id)}, "test": {quote(case.test)}, "language": {quote(case.language)}, '
        f'"capability": {quote(case.capability)}, "type": {quote(case.type)}, '
        f'"fills": {{{fills}}}, "examples": [{examples}]{tail}}}\n'
    )


def read_cases(path: Path) -> list[Case]:
    """Return the cases of a file.

    Raises `DataError` with all faults and their lines: lines that are not JSON or not a case, and duplicate ids.
    `MissingDataError`: there is no such file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise MissingDataError(f"There is no file {str(path)!r}.") from error
    except IsADirectoryError as error:
        raise DataError(f"{str(path)!r} is a folder: expected a file of cases.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{str(path)!r} is not UTF-8 text (byte {error.start}).") from error
    cases: list[Case] = []
    faults: list[str] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        found = _parsed(line)
        wrong = list(_faults(found))
        if wrong:
            faults += [f"line {number}: {fault}" for fault in wrong]
            continue
        case = _case(found)
        for name in (case.id, *(example.id for example in case.examples)):
            if name in seen:
                faults.append(f"line {number}: the id {name!r} is given twice (first on line {seen[name]})")
            seen.setdefault(name, number)
        cases.append(case)
    if faults:
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        more = [f"... and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
        raise DataError(f"{path} has {count}:" + "".join(f"\n  {item}" for item in [*faults[:SHOWN], *more]))
    return cases


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        return f"column {error.colno}: no JSON: {error.msg}"


def _faults(found: Any) -> Iterator[str]:
    if isinstance(found, str):
        yield found
    elif not isinstance(found, dict):
        yield "expected a case: an object with id, test, language and examples"
    else:
        known = (*_TEXTS, "fills", "examples", "normalise")
        yield from _key_faults(found, known, _OPTIONAL, "")
        for key in _TEXTS:
            if key in found and not isinstance(found[key], str):
                yield f"{key}: expected a text"
        fills = found.get("fills", {})
        if not isinstance(fills, dict) or not all(isinstance(value, str) for value in fills.values()):
            yield "fills: expected an object of texts"
        profile = found.get("normalise")
        if "normalise" in found and (not isinstance(profile, dict) or profile.keys() != _PROFILE_KEYS):
            yield f"normalise: expected an object with {', '.join(sorted(_PROFILE_KEYS))}"
        examples = found.get("examples", [])
        if not isinstance(examples, list):
            yield "examples: expected a list"
            return
        for number, example in enumerate(examples, 1):
            yield from _example_faults(example, f"example {number}: ")


def _example_faults(example: Any, where: str) -> Iterator[str]:
    if not isinstance(example, dict):
        yield f"{where}expected an object with {', '.join(_EXAMPLE_KEYS)}"
        return
    yield from _key_faults(example, _EXAMPLE_KEYS, set(), where)
    for key in _EXAMPLE_KEYS:
        if key in example and not isinstance(example[key], str):
            yield f"{where}{key}: expected a text"


def _key_faults(
    found: Mapping[str, Any], known: Iterable[str], optional: set[str], where: str
) -> Iterator[str]:
    names = list(known)
    for key in names:
        if key not in found and key not in optional:
            yield f"{where}the key {key!r} is missing"
    for key in found:
        if key not in names:
            yield f"{where}unknown key {key!r}"


def _case(found: dict[str, Any]) -> Case:
    examples = [
        CaseExample(id=item["id"], context=item["context"], question=item["question"], answer=item["answer"])
        for item in found["examples"]
    ]
    return Case(
        id=found["id"],
        test=found["test"],
        language=found["language"],
        examples=tuple(examples),
        capability=found.get("capability", ""),
        type=found.get("type", "MFT"),
        fills=found.get("fills", {}),
    )
