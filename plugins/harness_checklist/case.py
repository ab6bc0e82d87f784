"""The cases of a generated suite, their files of JSON lines, and cases that no system can pass.

The defects of a case are those that templates force on it, whatever the model: no examples, an answer that is not in
its context, two answers to one question. They are the floor under an error rate, and lower bounds: a case without a
defect may still be wrong. All faults of a file are reported at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from harness import DataError, MissingDataError, Problem, SpecError
from harness_checklist.suite import Profile

Line = TypeVar("Line")
MOST_LISTED = 100
Defect = Literal["empty", "unanswerable", "contradictory"]
DEFECTS: tuple[Defect, ...] = ("empty", "contradictory", "unanswerable")


def read_text(path: Path) -> str:
    """Return the text of a file; raises `MissingDataError` where there is none, `DataError` for other faults."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise MissingDataError(f"There is no file {str(path)!r}.") from error
    except OSError as error:
        raise DataError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{str(path)!r} is not UTF-8 at byte {error.start}.") from error


def read_lines(text: str, shape: TypeAdapter[Line], faults: list[Problem]) -> list[tuple[int, Line]]:
    """Return the number and the value of every line that is not empty; adds the others to `faults`."""
    values = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                values.append((number, shape.validate_json(line, strict=True)))
            except ValidationError as error:
                faults += [Problem(message=_message(fault), line=number) for fault in error.errors()]
    return values


def _message(fault: Any) -> str:
    key = ".".join(str(segment) for segment in fault["loc"])
    if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"unknown key {key!r}"
    if fault["type"] == "missing":
        return f"the key {key!r} is missing"
    return f"{key}: {fault['msg']}, found {fault['input']!r}" if key else fault["msg"]


def raise_faults(path: Path, faults: list[Problem]) -> None:
    """Raise `SpecError` with the faults of a file in the order of their lines, where there are any."""
    if faults:
        faults.sort(key=lambda fault: fault.line or 0)
        more = len(faults) - MOST_LISTED
        last = [Problem(message=f"and {more} more faults")] if more > 0 else []
        raise SpecError(path, [*faults[:MOST_LISTED], *last])


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


def case_defect(examples: Sequence[CaseExample], profile: Profile) -> Defect | None:
    """Return why no extractive system can pass a case with these examples, or None where one can.

    ``empty``: it has no examples. ``contradictory``: one context and question has two answers that stay different
    after `profile` (no system can pass). ``unanswerable``: no span of a context equals the answer after `profile` (a
    system that copies cannot pass). A case with both of the latter two is contradictory.
    """
    defects = set(example_defects(examples, profile)) if examples else {"empty"}
    return next((defect for defect in DEFECTS if defect in defects), None)


def example_defects(examples: Sequence[CaseExample], profile: Profile) -> list[Defect | None]:
    """Return the defect of each example of one case, in their order; all sides of a contradiction have it."""
    first: dict[tuple[str, str], str] = {}
    contradicted: set[tuple[str, str]] = set()
    for example in examples:
        key = (example.context, example.question)
        answer = first.setdefault(key, example.answer)
        if answer != example.answer and profile.clean(answer) != profile.clean(example.answer):
            contradicted.add(key)
    return [
        "contradictory"
        if (example.context, example.question) in contradicted
        else None
        if answerable(example.context, example.answer, profile)
        else "unanswerable"
        for example in examples
    ]


def answerable(context: str, answer: str, profile: Profile) -> bool:
    """Return whether some span of the context equals the answer after `profile`, the empty span among them."""
    return answer in context or _cleaned_span(context, answer, profile)


@lru_cache(maxsize=1 << 16)
def _cleaned_span(context: str, answer: str, profile: Profile) -> bool:
    cleaned = profile.clean(answer)
    if cleaned == "" or (cleaned in context and profile.clean(cleaned) == cleaned):
        return True
    return any(
        profile.clean(context[start:end]) == cleaned
        for starts, ends in _windows(context, cleaned, profile)
        for start in starts
        for end in ends
        if start <= end
    )


def _windows(context: str, cleaned: str, profile: Profile) -> Iterator[tuple[range, range]]:
    """Yield ranges of starts and ends: only spans within them can clean to `cleaned`.

    `Profile.clean` takes away only characters of articles and of `strip`, and puts in only spaces. So each word of
    `cleaned` is in the context in one piece, and only removable characters surround the first and the last word of
    a span.
    """
    words = cleaned.split(" ")
    words = [word for word in words if word]
    if not words:  # nothing but spaces, where `strip` keeps them
        yield range(len(context) + 1), range(len(context) + 1)
        return
    removable = frozenset("".join(profile.articles) + profile.strip + " ")
    heads = _occurrences(context, words[0], profile)
    tails = heads if len(words) == 1 else _occurrences(context, words[-1], profile)
    for head, head_end in heads:
        low = head
        while low and context[low - 1] in removable:
            low -= 1
        for tail, tail_end in tails:
            if (tail == head) if len(words) == 1 else (tail >= head_end):
                high = tail_end
                while high < len(context) and context[high] in removable:
                    high += 1
                yield range(low, head + 1), range(tail_end, high + 1)


def _occurrences(context: str, word: str, profile: Profile) -> list[tuple[int, int]]:
    """Return start and end of each occurrence, also of those that overlap."""
    pieces = [character.casefold() if profile.casefold else character for character in context]
    text = "".join(pieces)
    at: dict[int, int] = {}  # offset in the folded text -> offset in the context
    offset = 0
    for index, piece in enumerate(pieces):
        at[offset] = index
        offset += len(piece)
    at[offset] = len(context)
    occurrences = []
    start = text.find(word)
    while start >= 0:
        if start in at and start + len(word) in at:
            occurrences.append((at[start], at[start + len(word)]))
        start = text.find(word, start + 1)
    return occurrences
