"""The cases of a generated suite, and their files: JSON lines, one case per line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter

from harness import DataError, Problem, SpecError
from harness_checklist.generation.lines import raise_faults, read_lines, read_text
from harness_checklist.suites.suite import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseExample:
    """A question about a context, with the one answer that passes."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    id: str
    """The id of its case, ``/``, and its 1-based number in it."""
    context: str
    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Contexts x questions of one draw of fill-ins: it passes where every example does (CheckList's MFT).

    As JSON, one line of a ``.jsonl`` file: ``{"id", "test", "language", "capability", "type", "fills": {slot: id},
    "examples": [{"id", "context", "question", "answer"}], "normalise": {...}}``.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    id: str
    """The id of its test, ``-``, and a digest of `fills`: the same draw has it in every file, whatever n and seed."""
    test: str
    language: str
    examples: tuple[CaseExample, ...]
    """Empty where no variant of the templates applies to the draw: such a case counts as failed."""
    capability: str = ""
    type: str = "MFT"
    fills: dict[str, str] = field(default_factory=dict)
    """Slot -> the id of its fill-in; the id of a name is the name."""
    normalise: Profile = field(default=Profile())
    """How its answers are compared."""


_CASE = TypeAdapter(Case)


def case_lines(cases: Iterable[Case]) -> str:
    """Return the cases as JSON lines."""
    profiles: dict[Profile, str] = {}
    lines = []
    for case in cases:
        if case.normalise not in profiles:
            profiles[case.normalise] = json.dumps(case.normalise.model_dump(mode="json"), ensure_ascii=False)
        lines.append(_line(case, profiles[case.normalise]))
    return "".join(lines)


def _line(case: Case, profile: str) -> str:
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
        f'"fills": {{{fills}}}, "examples": [{examples}], "normalise": {profile}}}\n'
    )


def read_cases(path: Path) -> list[Case]:
    """Return the cases of a file.

    Raises `DataError` with all faults and their lines: lines that are not JSON or not a case, and duplicate ids.
    `MissingDataError`: there is no such file.
    """
    faults: list[Problem] = []
    line_of: dict[str, int] = {}
    lines = read_lines(read_text(path), _CASE, faults)
    for number, case in lines:
        for name in (case.id, *(example.id for example in case.examples)):
            if line_of.setdefault(name, number) != number:
                message = f"the id {name!r} is given twice (first on line {line_of[name]})"
                faults.append(Problem(message=message, line=number))
    try:
        raise_faults(path, faults)
    except SpecError as error:
        raise DataError(error.message) from error
    return [case for _, case in lines]
