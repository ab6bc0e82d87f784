"""The file that ``--config`` names: any options of a command, by their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.errors import Problem, SpecError, UsageError, near_names
from harness.specs.loading import Document, read_yaml

__all__ = ["read_configuration"]

LISTS = frozenset(
    {
        "tasks",
        "languages",
        "data",
        "protocols",
        "train_languages",
        "tasks_from",
        "translators",
        "variants",
        "reuse",
    }
)
"""Options that take one text or a list of texts."""
NAMES = {"protocol": "protocols", "option": "options", "translator": "translators"}
"""Options whose name on the command line is a singular."""
EXPECTED = {
    **dict.fromkeys(LISTS, "a text or a list of texts"),
    **dict.fromkeys(("limit", "train_limit", "batch_tokens", "num_processes"), "a whole number"),
    "with_baselines": "true or false",
    "chat": "true or false",
    "constrained": "true or false",
    "shots": "a whole number",
    "with_published": "true or false",
    "seeds": "a whole number or a list of them",
    "options": "a mapping of keys to values, or a list of KEY=VALUE",
}


def read_configuration(path: Path, known: set[str]) -> dict[str, Any]:
    """Return the options of a configuration file; raises `SpecError` with all its faults and their lines."""
    try:
        document = read_yaml(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise UsageError(f"The configuration file {str(path)!r} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"The configuration file {str(path)!r} is not UTF-8: {error}.") from error
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for written, value in document.data.items():
        key = NAMES.get(written.replace("-", "_"), written.replace("-", "_"))
        fault = _fault(key, value, known)
        if key in values:
            fault = "is given twice under two spellings"
        if fault is not None:
            problems.append(_problem(document, written, fault))
        elif value is not None:
            values[key] = _plain(key, value)
    if problems:
        raise SpecError(path, problems)
    return values


def _problem(document: Document, written: str, fault: str) -> Problem:
    return Problem(message=fault, key=written, line=document.line_of([written]))


def _fault(key: str, value: Any, known: set[str]) -> str | None:
    if key not in known:
        near = near_names(key, known)
        return "unknown key" + (f"; did you mean {near[0]!r}?" if near else "")
    if value is None or _fits(key, value):
        return None
    return f"expected {EXPECTED.get(key, 'a text')}, found {value!r}"


def _fits(key: str, value: Any) -> bool:
    if key in LISTS:
        return isinstance(value, str) or _is_list_of(value, str)
    whole = type(value) is int  # a truth value is an int to Python, and no number to a user
    match key:
        case "limit" | "train_limit" | "shots" | "batch_tokens" | "num_processes":
            return whole
        case "seeds":
            return whole or isinstance(value, str) or _is_list_of(value, int)
        case "with_baselines" | "with_published" | "chat" | "constrained":
            return isinstance(value, bool)
        case "options":
            return _is_list_of(value, str) or isinstance(value, dict)
        case _:
            return isinstance(value, str)


def _is_list_of(value: Any, sort: type) -> bool:
    return isinstance(value, list) and all(type(item) is sort for item in value)


def _plain(key: str, value: Any) -> Any:
    """Return the value as the command line would have given it."""
    if key in LISTS and isinstance(value, str):
        return [value]
    if key == "seeds":
        return ",".join(map(str, value)) if isinstance(value, list) else str(value)
    if key == "options" and isinstance(value, dict):
        return [f"{name}={_text(item)}" for name, item in value.items()]
    return value


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
