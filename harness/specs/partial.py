"""The valid part of a faulty document, so that its other faults are found in the same pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from harness.errors import Problem
from harness.specs.loading import Document
from harness.specs.schema import SpecModel
from harness.specs.validating import key_path

Model = TypeVar("Model", bound=SpecModel)
ROUNDS = 10
"""Of removing what is faulty: a key that was hidden by another fault may be faulty too."""
NEEDED: dict[str, Any] = {
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
DEPENDENT = {
    "labels": {"label_map"},
    "inputs": {"translate", "cluster"},
    "axes": {"local", "sample", "config", "only"},
    "languages": {"only", "counts"},
    "tasks": {"categories", "scores", "literals"},
}
"""Key -> keys whose problems may only follow from its being replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidPart(Generic[Model]):
    """A document without its faulty keys."""

    spec: Model
    document: Document
    replaced: frozenset[str]
    """Top-level keys that are missing or no longer those of the file."""

    def own(self, problems: Sequence[Problem]) -> list[Problem]:
        """Return the problems of the file itself, without those that removing faulty keys may have made."""
        dependent = set().union(*(DEPENDENT.get(name, set()) for name in self.replaced))
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
    for _ in range(ROUNDS):
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
    path = key_path(fault)
    return path[:-1] if fault["type"] == "missing" and len(path) > 1 else path


def _remove(data: dict[str, Any], path: Sequence[str | int], changed: set[str]) -> bool:
    """Remove or replace one key and return whether a document is left that can be checked."""
    top = str(path[0])
    if len(path) == 1 and top in NEEDED:
        if data.get(top) == NEEDED[top]:
            return False
        data[top] = NEEDED[top]
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
