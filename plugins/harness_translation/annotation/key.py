"""The key of an annotation: the item behind each row of its sheets, which annotators must not see."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness import DataError, UsageError
from harness.storage import write_atomically
from harness_translation.annotation.item import TextItems, version_name

KEY: Final = "key.json"


class SheetRow(BaseModel):
    """A row of a sheet and the item behind it."""

    model_config = ConfigDict(frozen=True)

    row: str
    """The name that annotators see: a digest."""
    id: str
    gold: str
    """The inherited label."""
    digest: str = ""
    """As the records of runs name the item's texts; empty in older keys."""
    stratum: str
    weight: float
    """The number of items of the test set that it represents."""
    fields: dict[str, str]
    choices: dict[str, str] = {}
    """Label -> its text, if labels are choices between texts."""


class Sheet(BaseModel):
    """The rows of one text, in an arbitrary order."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    name: str = Field(validation_alias="sheet", serialization_alias="sheet")
    task: str
    language: str
    view: dict[str, str]
    """``variant`` and ``translator``; empty for the task's own text."""
    labels: tuple[str, ...]
    provenance: str
    design: str
    """``simple`` or ``stratified by label``."""
    population: int
    """The number of items of the whole text."""
    rows: tuple[SheetRow, ...]

    @cached_property
    def by_row(self) -> Mapping[str, SheetRow]:
        """The rows by their names."""
        return {row.row: row for row in self.rows}

    @property
    def text(self) -> str:
        """The version of the text and, for the task's own, where it comes from."""
        provenance = f", {self.provenance}" if self.provenance and not self.view else ""
        return f"{version_name(self.view)}{provenance}"


class Key(BaseModel):
    """All sheets of an annotation."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    version: Literal[1] = Field(default=1, validation_alias="schema", serialization_alias="schema")
    seed: int
    annotators: tuple[str, ...]
    instructions: dict[str, tuple[str, ...]]
    """The instructions for annotators, by task and paragraph."""
    sheets: tuple[Sheet, ...]

    def sheet_of(self, row: str) -> Sheet | None:
        """Return the sheet of a row."""
        return next((sheet for sheet in self.sheets if row in sheet.by_row), None)


def sheet_names(texts: Sequence[TextItems], seed: int) -> list[str]:
    """Return a name for the sheet of every text that does not reveal its version: ``xnli-hi-1``."""
    order = sorted(range(len(texts)), key=lambda number: _digest(seed, "sheet", *_identity(texts[number])))
    counts: dict[str, int] = {}
    names = [""] * len(texts)
    for number in order:
        head = f"{texts[number].task}-{texts[number].language}"
        counts[head] = counts.get(head, 0) + 1
        names[number] = f"{head}-{counts[head]}"
    return names


def row_name(text: TextItems, identifier: str, seed: int) -> str:
    """Return the name of a row, which reveals neither the item nor its label."""
    return _digest(seed, *_identity(text), identifier)[:10]


def _identity(text: TextItems) -> tuple[str, ...]:
    return text.task, text.language, *(f"{name}={value}" for name, value in sorted(text.view.items()))


def _digest(*parts: object) -> str:
    return blake2b(json.dumps(parts).encode(), digest_size=16, person=b"harness row").hexdigest()


def write_key(key: Key, folder: Path) -> None:
    """Write the key into the folder of an annotation."""
    write_atomically(folder / KEY, key.model_dump_json(by_alias=True, indent=1) + "\n")


def read_key(folder: Path) -> Key:
    """Return the key of an annotation; raises `UsageError` if there is none, `DataError` for a broken one."""
    path = folder / KEY
    try:
        return Key.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise UsageError(
            f"The folder {str(folder)!r} has no {KEY}, so its rows are unknown.",
            hint="Make one: harness annotate export --tasks xnli --languages hi --output DIR",
        ) from error
    except OSError as error:
        raise DataError(f"The key {str(path)!r} cannot be read: {error}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"])) or "the file"
        raise DataError(f"The key {str(path)!r} is damaged: {location!r}: {first['msg']}.") from error
