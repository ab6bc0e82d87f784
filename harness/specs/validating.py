"""Documents against the pydantic models of specs: all faults at once, with their lines.

The valid part of a faulty document is validated further, so that its other faults are found in the same pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args

from pydantic import ValidationError

from harness.errors import Problem, SpecError, UsageError, near_names
from harness.specs.loading import Document, read_yaml
from harness.specs.schema import SpecModel

Model = TypeVar("Model", bound=SpecModel)
_SHOWN_CHARACTERS = 500
"""Of a wrong value, in the message about it."""
_ROUNDS = 10
"""Of removing what is faulty: a key that was hidden by another fault may be faulty too."""
_NEEDED: dict[str, Any] = {
    "version": 1,
    "description": "",
    "citation": "",
    "license": "",
    "metrics": ["?"],
    "inputs": ["?"],
    "labels": ["?", "??"],
    "tasks": ["?"],
}
"""What replaces a key that no document can be checked without."""
_DEPENDENT = {
    "labels": {"label_map"},
    "inputs": {"translate", "cluster"},
    "axes": {"local", "sample", "config", "only"},
    "languages": {"only", "counts"},
    "tasks": {"categories", "scores", "literals"},
}
"""Key -> keys whose problems may only follow from its being replaced."""


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
    path = _key_path(fault)
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
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def _key_path(fault: Any) -> list[str | int]:
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
    path = _key_path(fault)
    return fault["loc"][-1:] == ("str",) and any(
        _key_path(candidate)[: len(path)] == path and len(_key_path(candidate)) > len(path)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidPart(Generic[Model]):
    """A document without its faulty keys."""

    spec: Model
    document: Document
    replaced: frozenset[str]
    """Top-level keys that are missing or no longer those of the file."""

    def own(self, problems: Sequence[Problem]) -> list[Problem]:
        """Return the problems of the file itself, without those that removing faulty keys may have made."""
        dependent = set().union(*(_DEPENDENT.get(name, set()) for name in self.replaced))
        return [
            problem
            for problem in problems
            if problem.key.split(".")[0] not in self.replaced and dependent.isdisjoint(problem.key.split("."))
        ]


def valid_part(
    model: type[Model], document: Document, replaced: Sequence[str] = ()
) -> ValidPart[Model] | None:
    """Return a document without the keys that its schema rejects, or None where nothing useful is left.

    Args:
        model: The schema.
        document: What was read.
        replaced: Top-level keys that the caller has replaced already.
    """
    data = json.loads(json.dumps(document.data))
    changed = set(replaced)
    for _ in range(_ROUNDS):
        try:
            spec = model.model_validate_json(json.dumps(data), strict=True)
        except ValidationError as error:
            # From the last to the first, since removing an item of a list moves those behind it.
            paths = [_faulty(fault) for fault in reversed(error.errors())]
            if not all(path and _remove(data, path, changed) for path in paths):
                return None
        else:
            reduced = replace(document, data=data)
            return ValidPart(spec=spec, document=reduced, replaced=frozenset(changed))
    return None


def _faulty(fault: Any) -> list[str | int]:
    """Return the path of the key that must go: of a missing key the mapping around it, except at the top."""
    path = _key_path(fault)
    return path[:-1] if fault["type"] == "missing" and len(path) > 1 else path


def _remove(data: dict[str, Any], path: Sequence[str | int], changed: set[str]) -> bool:
    """Remove or replace one key and return whether a document is left that can be checked."""
    top = str(path[0])
    if len(path) == 1 and top in _NEEDED:
        if data.get(top) == _NEEDED[top]:
            return False
        data[top] = _NEEDED[top]
        changed.add(top)
        return True
    container: Any = data
    for key in path[:-1]:
        try:
            container = container[key]
        except (KeyError, IndexError, TypeError):
            return True  # it went with a fault that is reported behind it
    if isinstance(container, list) and isinstance(path[-1], int):
        del container[path[-1] : path[-1] + 1]
        changed.add(top)  # the items behind it are moved: their problems would have wrong lines
    elif isinstance(container, dict):
        container.pop(path[-1], None)
        if len(path) == 1 or path[:-1] == ["languages"]:
            changed.add(top)
    else:
        return False
    return bool(data.get("languages", True))
