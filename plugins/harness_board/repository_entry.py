"""A file of a results repository, schema 1: what one model scores on one version of a task, in one or more runs.

Its place follows from its content: ``results/MODEL/TASK-vVERSION.json``. Scores are fractions in [0, 1].
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping
from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from harness.specs import Code, SpecModel

FOLDER = "results"
DIGITS = 6
"""Of scores: a share of fewer than 500,000 items still shows how many of them are right."""
ROUNDED = 0.5 * 10**-DIGITS
LONGEST_NAME = 200
"""Bytes of a file name, below the 255 that file systems allow."""
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
"""Names that Windows keeps for devices."""
_PATH = re.compile(
    r"(?:^|[\s\"'=,;:(\[])((?:~|/[\w.+@-]+)(?:/[\w.+@-]+)+|[A-Za-z]:[\\/]{1,2}\w|\\\\\\*\w|file:/)"
)

Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:+\-]*$", max_length=100)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{12,64}$")]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=10**9)]
_LINE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True)
_EXPANDED = frozenset(
    ("", "/task", "/task/languages", "/runs", "/runs/", "/runs//fits", "/runs//scores", "/runs//means")
)
"""Lists and mappings that are written over several lines; a member of a list has an empty name."""


def _check_text(text: str) -> str:
    """Return a text without control characters and marks that reorder others; raises `ValueError`."""
    if not text.isprintable() or text != text.strip():
        raise ValueError("expected printable characters, and no space at either end")
    return text


def _check_moment(text: str) -> str:
    """Return a date and time in ISO 8601; raises `ValueError` for one that is in no calendar."""
    datetime.fromisoformat(text)
    return text


def _check_file_name(name: str) -> str:
    """Return a name that a file can have; raises `ValueError`."""
    file_name(name)
    return name


Text = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_check_text)]


class ScoredValue(SpecModel):
    """A number with its 95 % interval."""

    model_config = ConfigDict(allow_inf_nan=False)

    value: Annotated[float, Field(ge=0)]
    se: Annotated[float, Field(ge=0)] | None = None
    ci: tuple[float, float] | None = None
    ci_method: Text | None = None
    """How the interval was made, or why there is none."""

    @model_validator(mode="after")
    def _is_in_its_interval(self) -> Self:
        if self.ci is None and self.ci_method is None:
            raise ValueError("expected an interval, or the reason why there is none")
        if self.ci is not None and not self.ci[0] - 2 * ROUNDED <= self.value <= self.ci[1] + 2 * ROUNDED:
            raise ValueError(
                f"{self.value:g} is outside of its interval from {self.ci[0]:g} to {self.ci[1]:g}"
            )
        return self


class Conditioned(SpecModel):
    """What has a protocol, a method and a view: scores of one condition have a mean over languages."""

    protocol: Identifier
    method: Identifier
    view: dict[Identifier, Text] = Field(default_factory=dict)

    @property
    def condition(self) -> tuple[str, str, tuple[tuple[str, str], ...]]:
        """Protocol, method and view."""
        return (self.protocol, self.method, tuple(sorted(self.view.items())))


class ItemSource(SpecModel):
    """Where the items of a score are from."""

    origin: Text
    """``hub``, ``local`` or ``web``."""
    digest: Digest
    """The start of the digest of the files and of how they are read."""
    revision: Text | None = None
    """The commit or checksum of a download."""
    released: bool = False
    """Whether the files are those of the release that the task's makers published."""


class ModelScore(Conditioned):
    """One cell of a run: a language under one condition, prompt and seed."""

    language: Code
    split: Identifier
    stands_in: bool = False
    """Whether a dev file was used as the test set."""
    provenance: Text | None = None
    seed: int | None = None
    prompt: Digest | None = None
    fit: Identifier | None = None
    n: Count
    size: Count
    """Items of the test set."""
    items: ItemSource
    metrics: Annotated[dict[Identifier, ScoredValue], Field(min_length=1)]
    partial: bool = False
    """Whether it was allowed to be on fewer items than the test or training set has."""
    unpinned: bool = False
    """Whether it was allowed to be on a download that no commit or checksum fixes."""

    @model_validator(mode="after")
    def _can_be_published(self) -> Self:
        for name, metric in self.metrics.items():
            if metric.value > 1 and not name.endswith("_ratio"):
                raise ValueError(f"{name!r} is {metric.value:g}; expected a fraction of at most 1")
        if self.n > self.size or (self.n < self.size and not self.partial):
            marked = "" if self.n > self.size else ", and is not marked as partial"
            raise ValueError(f"it has {self.n:,} items of a test set of {self.size:,}{marked}")
        if self.split != "test" and not self.stands_in:
            expected = "expected 'test', or a dev file that replaces it"
            raise ValueError(f"it is on the split {self.split!r}; {expected}")
        if self.items.origin == "sample":
            raise ValueError("it is on the sample data, whose scores say nothing about a model")
        if self.items.origin != "local" and self.items.revision is None and not self.unpinned:
            raise ValueError("it is on a download without a revision, and is not marked as unpinned")
        return self

    @property
    def key(self) -> tuple[Hashable, ...]:
        """Key that no two scores of one version of the harness share."""
        return (self.language, self.split, *self.condition, self.seed, self.prompt)


class LanguageMean(ScoredValue, Conditioned):
    """The mean over languages of a metric, whose interval needs the items."""

    metric: Identifier
    languages: Annotated[tuple[Code, ...], Field(min_length=1)]


class ModelRun(SpecModel):
    """One run of the model on the task: when, with what, and its scores."""

    created: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT[\d:.+Z-]+$"), AfterValidator(_check_moment)]
    harness: Annotated[str, Field(pattern=r"^\d+\.\d+[\w.+-]*$")]
    adapter: Identifier
    parameters: Annotated[int, Field(ge=0, le=10**15)] | None = None
    revision: Text | None = None
    weights: Digest | None = None
    """SHA-256 of the weights, where the adapter can compute it."""
    dtype: Text | None = None
    fits: dict[Identifier, Text] = Field(default_factory=dict)
    """How the model was trained for the task: digest -> data, seed and recipe."""
    scores: Annotated[tuple[ModelScore, ...], Field(min_length=1)]
    means: tuple[LanguageMean, ...] = ()


class ScoredTask(SpecModel):
    """What a board needs of a task, as the newest run describes it."""

    name: Annotated[Identifier, AfterValidator(_check_file_name)]
    version: Count
    kind: Identifier
    metrics: Annotated[tuple[Identifier, ...], Field(min_length=1)]
    headline: Annotated[tuple[Identifier, ...], Field(min_length=1)]
    parallel: bool = False
    source: Code | None = None
    chance: Share | None = None
    axes: tuple[Identifier, ...] = ()
    published_languages: tuple[Code, ...] = ()
    added: tuple[Code, ...] = ()
    """Languages that others added to the task."""
    languages: dict[Code, tuple[Text, Text]]
    """Code -> family and script, of the languages with scores."""
    names: dict[Code, Text] = Field(default_factory=dict)
    """Names of languages that the task itself describes."""


class RepositoryEntry(SpecModel):
    """One file."""

    schema_: Literal[1] = Field(alias="schema")
    model: Annotated[Text, AfterValidator(_check_file_name)]
    task: ScoredTask
    runs: Annotated[tuple[ModelRun, ...], Field(min_length=1)]

    @property
    def path(self) -> PurePosixPath:
        """Where the file belongs in its repository."""
        name = f"{file_name(self.task.name)}-v{self.task.version}.json"
        return PurePosixPath(FOLDER, file_name(self.model), name)

    def text(self) -> str:
        """Return the file: the same bytes for the same scores, and one line per score."""
        content = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        for run in content["runs"]:
            run["scores"].sort(key=lambda score: (score["language"], _LINE.encode(score)))
            run.get("means", []).sort(key=_LINE.encode)
        content["runs"].sort(key=lambda run: (run["created"], _LINE.encode(run)))
        return canonical(content)


def canonical(content: Any, place: str = "", indent: str = "") -> str:
    """Return a JSON value as files have it: sorted keys, and one line per score, so that git shows what changed."""
    if place not in _EXPANDED or not content or not isinstance(content, dict | list):
        return _LINE.encode(content)
    inner = f"{indent} "
    if isinstance(content, dict):
        members = [
            f"{inner}{_LINE.encode(key)}: {canonical(content[key], f'{place}/{key}', inner)}"
            for key in sorted(content)
        ]
    else:
        members = [f"{inner}{canonical(member, f'{place}/', inner)}" for member in content]
    opening, closing = "{}" if isinstance(content, dict) else "[]"
    return f"{opening}\n" + ",\n".join(members) + f"\n{indent}{closing}" + ("" if place else "\n")


def file_name(name: str) -> str:
    """Return any name as one part of a path that every file system takes; `urllib.parse.unquote` is its inverse.

    Letters, digits, ``_``, ``.``, ``-`` and ``~`` stay, all else is ``%XX``: ``org/name`` is ``org%2Fname``. A name is
    never hidden, a device of Windows, or a way to another folder. Raises `ValueError` where it is empty or too long.
    """
    safe = quote(name, safe="")
    if safe.startswith((".", "-", "~")) or _RESERVED.fullmatch(safe):
        safe = f"%{ord(safe[0]):02X}{safe[1:]}"
    if safe.endswith("."):
        safe = f"{safe[:-1]}%2E"
    if not 0 < len(safe) <= LONGEST_NAME:
        raise ValueError(f"its file name would have {len(safe)} bytes; expected 1 to {LONGEST_NAME}")
    return safe


def local_path(text: str) -> str | None:
    """Return a path of somebody's machine in a text, None where none is."""
    lines = (line for line in text.splitlines() if "/" in line or "\\" in line)
    return next((match[1] for line in lines if (match := _PATH.search(line))), None)


def schema() -> Mapping[str, Any]:
    """Return the JSON schema of a file, for editors."""
    content = RepositoryEntry.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **content}
