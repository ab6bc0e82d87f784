"""Files of JSON lines whose faults are all reported at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from harness import DataError, MissingDataError, Problem, SpecError

Line = TypeVar("Line")
MOST_LISTED = 100


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
