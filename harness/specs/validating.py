"""Documents against the pydantic models of specs: all faults at once, with their lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import ValidationError

from harness.errors import Problem, SpecError, UsageError, near_names
from harness.specs.loading import Document, read_yaml
from harness.specs.schema import SpecModel

Model = TypeVar("Model", bound=SpecModel)
SHOWN_CHARACTERS = 500
"""Of a wrong value, in the message about it."""


def validate_document(model: type[Model], document: Document) -> Model:
    """Return the validated model; raises `SpecError` with all faults and their lines at once."""
    try:
        return model.model_validate_json(json.dumps(document.data), strict=True)
    except ValidationError as error:
        errors = error.errors()
        faults = [fault for fault in errors if not _is_other_branch(fault, errors)]
        problems = [_problem(fault, model, document) for fault in faults]
        raise SpecError(document.source, sorted(problems, key=lambda problem: problem.line or 0)) from error


def read_model(model: type[Model], path: Path, noun: str) -> Model:
    """Return the model of a YAML file; raises `UsageError` where it cannot be read, and as `validate_document`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"The {noun} {str(path)!r} cannot be read: {reason}.") from error
    return validate_document(model, read_yaml(text, str(path)))


def _problem(fault: Any, model: type[SpecModel], document: Document) -> Problem:
    path = key_path(fault)
    message = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        near = near_names(str(path[-1]), _keys_at(model, path[:-1]))
        message = f"unknown key {path[-1]!r}" + (f"; did you mean {near[0]!r}?" if near else "")
    elif (fault["type"], path[:1], fault["loc"][-1:]) == (
        "string_pattern_mismatch",
        ["languages"],
        ("[key]",),
    ):
        message = f"{path[-1]!r} is no language code: expected two or three small letters, such as 'yo' or 'zh-Hant'"
    elif fault["type"] == "missing":
        message = f"the key {path[-1]!r} is missing"
        path = path[:-1]
    elif not isinstance(fault.get("input"), dict):
        message = f"{message}, found {_shown(fault.get('input'))}"
    return Problem(message=message, line=document.line_of(path), key=".".join(str(key) for key in path))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def key_path(fault: Any) -> list[str | int]:
    """Return the keys that lead to a fault that pydantic found."""
    return [key for key in fault["loc"] if not _is_type_tag(key)]


def _is_type_tag(part: str | int) -> bool:
    """Return whether a part of pydantic's location names a branch of a union rather than a key."""
    return isinstance(part, str) and (
        part in {"str", "int", "[key]", "LocalSource"} or part.startswith(("tuple[", "dict[", "literal["))
    )


def _is_other_branch(fault: Any, faults: Iterable[Any]) -> bool:
    """Return whether a fault only says that a value is not the simple alternative to a list or mapping.

    ``local`` may be a text or a list; where the list has a fault, that one is reported and not "should be a string".
    """
    path = key_path(fault)
    return fault["loc"][-1:] == ("str",) and any(
        key_path(candidate)[: len(path)] == path and len(key_path(candidate)) > len(path)
        for candidate in faults
    )


def _keys_at(model: type[SpecModel], path: Iterable[str | int]) -> set[str]:
    models = [model]
    for name in path:
        fields = [item.model_fields[name] for item in models if name in item.model_fields]
        if fields:
            models = [inner for field in fields for inner in _models_in(field.annotation)]
    return {key for item in models for key in item.model_fields}


def _models_in(annotation: Any) -> Iterator[type[SpecModel]]:
    if isinstance(annotation, type) and issubclass(annotation, SpecModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
