"""The rows of a diagnosis on a board, and the examples that their buckets lead to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.errors import DataError, UsageError
from harness.results import ItemRecord, Run
from harness_board.document import Board

__all__ = ["read_diagnosis", "with_diagnosis"]

KINDS = ("single", "pairwise", "data")
NEEDED = ("kind", "task", "attribute", "bucket", "n")
SHOWN = 10
"""Examples of a bucket that a board keeps."""
LONGEST = 2_000
"""Characters of one text of an example; what follows stays in the run's records."""


def with_diagnosis(board: Board, files: Sequence[Path], runs: Sequence[Run]) -> Board:
    """Return the board with the rows of diagnosis files; the items that they name are taken from the runs' records.

    Raises `DataError` for a file whose rows lack what a row must have.
    """
    if not files:
        return board
    rows = [row for path in files for row in read_diagnosis(path)]
    keyed = [
        {**row, "examples": [_key(row, item) for item in row.get("examples", [])[:SHOWN]]} for row in rows
    ]
    wanted = {key for row in keyed for key in row["examples"] if isinstance(key, str)}
    return replace(board, diagnosis=tuple(keyed), examples=_examples(wanted, runs))


def read_diagnosis(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a diagnosis that was written with ``--json``."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"The diagnosis {str(path)!r} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise DataError(f"{path} is no JSON: {error}.") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path}: expected a list of rows, as harness diagnose --json writes it.")
    for number, row in enumerate(rows, start=1):
        lacking = [name for name in NEEDED if name not in row]
        if lacking or row["kind"] not in KINDS:
            fault = f"lacks {', '.join(lacking)}" if lacking else f"has the kind {row['kind']!r}"
            raise DataError(
                f"{path}: row {number} {fault}; expected {', '.join(NEEDED)}, kind {'|'.join(KINDS)}."
            )
    return rows


def _key(row: Mapping[str, Any], item: Any) -> Any:
    """Return the key of an item that a row names by id; an example that stands in the row itself stays."""
    return item if isinstance(item, dict) else f"{row['task']}/{row.get('language') or ''}/{item}"


def _examples(wanted: Iterable[str], runs: Sequence[Run]) -> dict[str, list[dict[str, Any]]]:
    left = set(wanted)
    cells = {(key.split("/", 2)[0], key.split("/", 2)[1]) for key in left}
    found: dict[str, Any] = {}
    for run in runs:
        for cell in run.cells:
            if cell["status"] != "ok" or (cell["task"], cell["language"]) not in cells:
                continue
            for record in run.records(cell):
                key = f"{cell['task']}/{cell['language']}/{record.id}"
                if key in left:
                    known = found.setdefault(key, _example(record, cell["language"]))
                    known["predictions"][run.manifest["model"]] = _cut(record.prediction)
    return found


def _example(record: ItemRecord, language: str) -> dict[str, Any]:
    inputs = {name: _cut(value) for name, value in record.fields.items()}
    return {
        "id": record.id,
        "language": language,
        "inputs": inputs,
        "reference": _cut(record.reference),
        "predictions": {},
    }


def _cut(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    left = len(text) - LONGEST
    return text if left <= 0 else f"{text[:LONGEST]}… ({left:,} characters more)"
