"""What a manifest and results must hold so that they can be read; further keys are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from harness.errors import DataError

__all__ = ["DamagedRunError", "Document", "ManifestShape", "ResultsShape", "check_shape"]

Content = dict[str, Any]


class DamagedRunError(DataError, KeyError):
    """A file of a run has no key that a command needs."""

    __str__ = DataError.__str__


class Document(dict[str, Any]):
    """A JSON object of a file of a run; a key that is missing is an error that names the file."""

    def __init__(self, content: Mapping[str, Any], path: Path, hint: str) -> None:
        super().__init__(content)
        self._where = (path, hint)

    def __missing__(self, key: str) -> Any:
        path, hint = self._where
        raise DamagedRunError(f"{path} is damaged: it has no {key!r}.", hint=hint)


class _Identity(BaseModel):
    task: str
    language: str
    digest: str


class ManifestShape(BaseModel):
    """The types of what ``manifest.json`` holds; not every run has every key."""

    model: str = ""
    tasks: dict[str, Content] = {}
    config: Content = {}
    suites: list[Content] = []
    cells: list[_Identity] = []
    resolved: Content = {}
    versions: dict[str, str | None] = {}
    identity: dict[str, str] = {}


class _Value(BaseModel):
    value: float | None


class _Row(BaseModel):
    task: str
    protocol: str | None = None
    method: str | None = None
    view: dict[str, str] = {}


class _Cell(_Row):
    language: str
    seed: int | None = None
    n: int = 0
    status: str
    reason: str = ""
    metrics: dict[str, _Value]


class _TaskRow(_Row):
    metric: str
    value: float | None


class _Suite(BaseModel):
    suite: str
    protocol: str | None


class _Head(BaseModel):
    id: str = ""
    data: str = ""


class _Model(BaseModel):
    adapter: str = ""
    ref: str = ""


class ResultsShape(BaseModel):
    """The types of what ``results.json`` holds, and the keys without which there is no report."""

    run: _Head = _Head()
    model: _Model = _Model()
    cells: list[_Cell]
    tasks: list[_TaskRow] = []
    suites: list[_Suite] = []


def check_shape(shape: type[BaseModel], content: Mapping[str, Any], path: Path, hint: str) -> None:
    """Raise `DamagedRunError` that names the first key of a file that is missing or of another type."""
    try:
        shape.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise DamagedRunError(f"{path} is damaged at {place!r}: {first['msg']}.", hint=hint) from error
