"""Files of predictions for generated cases: JSON lines, or tab-separated."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness import MissingDataError, Problem, SpecError, UsageError, near_names
from harness_checklist.generation.case import Case

__all__ = ["ExampleKey", "read_predictions"]

ExampleKey = tuple[str, str]
"""Language and id of an example: a draw has the same id in every language."""
MOST_LISTED: Final = 100
COLUMNS: Final = (["id", "prediction"], ["language", "id", "prediction"])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    line: int
    id: str
    language: str | None
    text: str


def read_predictions(path: Path, cases: Sequence[Case]) -> dict[ExampleKey, str]:
    """Return the prediction of every example of the cases, by language and id.

    A ``.jsonl`` file has lines ``{"id": ..., "prediction": ...}``, a ``.tsv`` file ``id<TAB>prediction``, with or
    without a heading; both may name the ``language`` too (in a ``.tsv`` file first), and must where two languages
    share an id.

    Raises `SpecError` with all faults of the file: lines that cannot be read, ids that are unknown, doubled or
    missing. `UsageError` for another kind of file, `MissingDataError` where there is none.
    """
    if path.suffix not in {".jsonl", ".tsv"}:
        raise UsageError(f"The predictions {str(path)!r} are of no known kind: expected .jsonl or .tsv.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise MissingDataError(f"The predictions {str(path)!r} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"The predictions {str(path)!r} are not UTF-8: {error}.") from error
    problems: list[Problem] = []
    split = _json_rows if path.suffix == ".jsonl" else _tsv_rows
    rows = list(split(text, problems))
    found = _matched(rows, cases, problems)
    if problems:
        problems.sort(key=lambda problem: problem.line or 0)
        more = len(problems) - MOST_LISTED
        last = [Problem(message=f"and {more} more faults")] if more > 0 else []
        raise SpecError(path, [*problems[:MOST_LISTED], *last])
    return found


def _json_rows(text: str, problems: list[Problem]) -> Iterator[_Row]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            problems.append(Problem(message=f"is no JSON: {error}", line=number))
            continue
        fault = _row_fault(row)
        if fault is not None:
            problems.append(Problem(message=fault, line=number))
        else:
            yield _Row(line=number, id=row["id"], language=row.get("language"), text=row["prediction"])


def _row_fault(row: object) -> str | None:
    if not isinstance(row, Mapping):
        return f"expected an object with 'id' and 'prediction'; found {json.dumps(row, ensure_ascii=False)}"
    for key in ("id", "prediction"):
        if key not in row:
            near = near_names(key, row)
            return f"the key {key!r} is missing{f'; found {near[0]!r}' if near else ''}"
    for key in ("id", "prediction", "language"):
        value = row.get(key, "")
        if not isinstance(value, str):
            return f"{key!r} is text; found {json.dumps(value, ensure_ascii=False)}"
    return None


def _tsv_rows(text: str, problems: list[Problem]) -> Iterator[_Row]:
    for number, line in enumerate(text.split("\n"), start=1):
        fields = line.removesuffix("\r").split("\t")
        if not line.strip() or (number == 1 and fields in COLUMNS):
            continue
        if len(fields) == 2:
            yield _Row(line=number, id=fields[0], language=None, text=fields[1])
        elif len(fields) == 3:
            yield _Row(line=number, id=fields[1], language=fields[0], text=fields[2])
        else:
            message = f"expected an id, a tab and a prediction; found {len(fields)} columns"
            problems.append(Problem(message=message, line=number))


def _matched(rows: Sequence[_Row], cases: Sequence[Case], problems: list[Problem]) -> dict[ExampleKey, str]:
    languages: dict[str, list[str]] = {}
    for case in cases:
        for example in case.examples:
            languages.setdefault(example.id, []).append(case.language)
    found: dict[ExampleKey, str] = {}
    first: dict[ExampleKey, int] = {}
    for row in rows:
        fault = _id_fault(row, languages)
        if fault is not None:
            problems.append(Problem(message=fault, line=row.line))
            continue
        key = (row.language or languages[row.id][0], row.id)
        if key in found:
            message = f"the id {row.id!r} is given twice: also on line {first[key]}"
            problems.append(Problem(message=message, line=row.line))
        first.setdefault(key, row.line)
        found[key] = row.text
    missing = [(code, id_) for id_, codes in languages.items() for code in codes if (code, id_) not in found]
    if missing:
        shown = ", ".join(f"{id_!r} ({code})" for code, id_ in missing[:5])
        noun = "example has" if len(missing) == 1 else "examples have"
        message = f"{len(missing)} {noun} no prediction: {shown}{' ...' if len(missing) > 5 else ''}"
        problems.append(Problem(message=message))
    return found


def _id_fault(row: _Row, languages: Mapping[str, Sequence[str]]) -> str | None:
    codes = languages.get(row.id)
    if codes is None:
        return f"no example has the id {row.id!r}"
    if row.language is None and len(codes) > 1:
        return f"the id {row.id!r} is in several languages ({', '.join(codes)}): add the language"
    if row.language is not None and row.language not in codes:
        return f"the example {row.id!r} is in {' and '.join(codes)}, not in {row.language!r}"
    return None
