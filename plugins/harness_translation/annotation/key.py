"""The key of an annotation: the item of each row of its sheets, which annotators must not see."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from harness import DataError, UsageError
from harness.storage.files import write_atomically
from harness_translation.annotation.item import AnnotationItem, SheetText
from harness_translation.annotation.sample import DrawnItem, Sample

__all__ = ["ANNOTATIONS", "KEY", "Key", "KeyedRow", "Sheet", "make_key", "read_key", "write_key"]

KEY: Final = "key.json"
ANNOTATIONS: Final = "annotations.json"
SCHEMA: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRow:
    """A row of a sheet and the item behind it."""

    row: str
    """The name that annotators see: a digest."""
    drawn: DrawnItem


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """The rows of one text, in an arbitrary order."""

    name: str
    text: SheetText
    labels: tuple[str, ...]
    provenance: str
    design: str
    population: int
    """The number of items of the whole text."""
    rows: tuple[KeyedRow, ...]

    @cached_property
    def by_row(self) -> Mapping[str, KeyedRow]:
        """The rows by their identity."""
        return {keyed.row: keyed for keyed in self.rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """All sheets of an annotation."""

    seed: int
    annotators: tuple[str, ...]
    sheets: tuple[Sheet, ...]
    instructions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The instructions for annotators, by task and paragraph."""

    def sheet_of(self, row: str) -> Sheet | None:
        """Return the sheet of a row."""
        return next((sheet for sheet in self.sheets if row in sheet.by_row), None)


def make_key(
    samples: Sequence[Sample],
    *,
    seed: int,
    annotators: Sequence[str],
    instructions: Mapping[str, Sequence[str]],
) -> Key:
    """Return the key of samples; the names of sheets and rows do not reveal variants, items or labels."""
    order = sorted(range(len(samples)), key=lambda number: _digest(seed, "sheet", *_named(samples[number])))
    letters: dict[tuple[str, str], int] = {}
    names: dict[int, str] = {}
    for number in order:
        text = samples[number].source.text
        place = letters[text.task, text.language] = letters.get((text.task, text.language), 0) + 1
        names[number] = f"{text.task}-{text.language}-{place}"
    sheets = tuple(_sheet(sample, names[number], seed) for number, sample in enumerate(samples))
    rows = [keyed.row for sheet in sheets for keyed in sheet.rows]
    if len(set(rows)) != len(rows):
        raise UsageError("Two rows would have the same digest.", hint="Give another --seed.")
    return Key(seed=seed, annotators=tuple(annotators), sheets=sheets, instructions=instructions)


def _sheet(sample: Sample, name: str, seed: int) -> Sheet:
    rows = [
        KeyedRow(row=_digest(seed, *_named(sample), drawn.item.id)[:10], drawn=drawn)
        for drawn in sample.drawn
    ]
    return Sheet(
        name=name,
        text=sample.source.text,
        labels=sample.source.labels,
        provenance=sample.source.provenance,
        design=sample.design,
        population=len(sample.source.items),
        rows=tuple(sorted(rows, key=lambda keyed: keyed.row)),
    )


def _named(sample: Sample) -> tuple[str, ...]:
    text = sample.source.text
    return text.task, text.language, *(f"{name}={value}" for name, value in sorted(text.view.items()))


def _digest(*parts: object) -> str:
    return blake2b(json.dumps(parts).encode(), digest_size=16, person=b"harness row").hexdigest()


def write_key(key: Key, folder: Path) -> None:
    """Write the key into the folder of an annotation."""
    content = {
        "schema": SCHEMA,
        "seed": key.seed,
        "annotators": list(key.annotators),
        "instructions": {task: list(paragraphs) for task, paragraphs in key.instructions.items()},
        "sheets": [_sheet_json(sheet) for sheet in key.sheets],
    }
    write_atomically(folder / KEY, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def _sheet_json(sheet: Sheet) -> dict[str, Any]:
    return {
        "sheet": sheet.name,
        "task": sheet.text.task,
        "language": sheet.text.language,
        "view": dict(sheet.text.view),
        "labels": list(sheet.labels),
        "provenance": sheet.provenance,
        "design": sheet.design,
        "population": sheet.population,
        "rows": [
            {
                "row": keyed.row,
                "id": keyed.drawn.item.id,
                "gold": keyed.drawn.item.gold,
                "stratum": keyed.drawn.stratum,
                "weight": keyed.drawn.weight,
                "rank": keyed.drawn.rank,
                "cluster": keyed.drawn.item.cluster,
                "fields": dict(keyed.drawn.item.fields),
                "choices": dict(keyed.drawn.item.choices),
            }
            for keyed in sheet.rows
        ],
    }


def read_key(folder: Path) -> Key:
    """Return the key of an annotation; raises `UsageError` if there is none, `DataError` for a broken one."""
    path = folder / KEY
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(
            f"The folder {str(folder)!r} has no {KEY}, so its rows are unknown.",
            hint="Make one: harness annotate export --tasks xnli --languages hi --output DIR",
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(f"The key {str(path)!r} cannot be read: {error}.") from error
    try:
        if content["schema"] != SCHEMA:
            raise DataError(f"The key {str(path)!r} has the schema {content['schema']!r}; expected {SCHEMA}.")
        return Key(
            seed=content["seed"],
            annotators=tuple(content["annotators"]),
            instructions=content["instructions"],
            sheets=tuple(_read_sheet(sheet) for sheet in content["sheets"]),
        )
    except (KeyError, TypeError) as error:
        raise DataError(f"The key {str(path)!r} is damaged: {error} is missing.") from error


def _read_sheet(sheet: Mapping[str, Any]) -> Sheet:
    rows = [
        KeyedRow(
            row=row["row"],
            drawn=DrawnItem(
                item=AnnotationItem(
                    id=row["id"],
                    gold=row["gold"],
                    fields=row["fields"],
                    choices=row["choices"],
                    cluster=row["cluster"],
                ),
                stratum=row["stratum"],
                weight=row["weight"],
                rank=row["rank"],
            ),
        )
        for row in sheet["rows"]
    ]
    return Sheet(
        name=sheet["sheet"],
        text=SheetText(task=sheet["task"], language=sheet["language"], view=sheet["view"]),
        labels=tuple(sheet["labels"]),
        provenance=sheet["provenance"],
        design=sheet["design"],
        population=sheet["population"],
        rows=tuple(rows),
    )
