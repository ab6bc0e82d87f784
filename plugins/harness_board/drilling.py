"""The rows of a diagnosis on a board, and the examples that their buckets lead to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from harness import DataError, ItemRecord, Run, UsageError
from harness_board.document import Board

__all__ = ["diagnosed", "read_diagnosis", "with_diagnosis"]

KINDS = ("single", "pairwise", "data")
"""What a board shows of a diagnosis; rows of other kinds (calibration, confusion) belong to reports."""
NEEDED = ("task", "attribute", "bucket", "n")
KEPT = (
    *(
        "kind",
        "task",
        "language",
        "system",
        "systems",
        "attribute",
        "bucket",
        "n",
        "metric",
        "value",
        "values",
    ),
    *("ci", "difference", "p", "q", "examples"),
)
MOST_VALUES = 12
"""Values of an attribute whose values are names; the others are counted together."""
SHOWN = 10
"""Examples of a bucket that a board keeps."""
LONGEST = 2_000
"""Characters of one text of an example; what follows stays in the run's records."""


def with_diagnosis(board: Board, rows: Iterable[Mapping[str, Any]], runs: Sequence[Run]) -> Board:
    """Return the board with rows of a diagnosis; the items that they name are taken from the runs' records."""
    keyed = []
    for row in rows:
        for part in _buckets(row) if row["kind"] in KINDS else ():
            kept = {name: part[name] for name in KEPT if part.get(name) is not None}
            view = " ".join(f"{name}={value}" for name, value in sorted((row.get("view") or {}).items()))
            kept["attribute"] = f"{part['attribute']} ({view})" if view else part["attribute"]
            kept["examples"] = [_key(row, item) for item in (part.get("examples") or [])[:SHOWN]]
            keyed.append(kept)
    if not keyed:
        return board
    wanted = {key for row in keyed for key in row["examples"] if isinstance(key, str)}
    return replace(board, diagnosis=tuple(keyed), examples=_examples(wanted, runs))


def read_diagnosis(path: Path) -> list[dict[str, Any]]:
    """Return the rows that ``harness diagnose --json`` wrote; raises `UsageError` or `DataError`."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"The diagnosis {str(path)!r} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise DataError(f"{path} is no JSON: {error}.") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path}: expected a list of rows, as harness diagnose --json writes it.")
    for number, row in enumerate(rows, start=1):
        needed = ("task", "attribute", "histogram") if "histogram" in row else NEEDED
        missing = [name for name in ("kind", *needed) if name not in row]
        if missing and (row.get("kind") in KINDS or "kind" in missing):
            raise DataError(f"{path}: row {number} has no {', '.join(missing)}.")
    return rows


def diagnosed(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the diagnosis of every run, of the first against each other one, and of the first one's data.

    Raises `UsageError` where this installation cannot diagnose; a pair that cannot be compared is skipped.
    """
    try:
        diagnosis = import_module("harness.analysis.diagnosis")
    except ModuleNotFoundError as error:
        raise UsageError("This installation of the harness has no 'harness diagnose'.") from error
    from harness import open_session

    if not runs:
        raise UsageError("--with-diagnosis needs runs: published scores have no items.")
    registry = open_session().registry
    options = diagnosis.DiagnosisOptions(examples=SHOWN, common=True)
    jobs: list[tuple[list[Run], bool]] = [([runs[0]], True), *(([run], False) for run in runs)]
    jobs += [([runs[0], other], False) for other in runs[1:]]
    rows: list[dict[str, Any]] = []
    for chosen, data_only in jobs:
        try:
            rows += diagnosis.diagnose(chosen, registry, options, data_only=data_only).rows()
        except UsageError:
            if len(chosen) == 1:
                raise
    return rows


def _buckets(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the row, or one for each bin of a distribution."""
    if "histogram" not in row:
        yield row
        return
    bins = [(_bin(part), part[-1]) for part in row["histogram"]]
    if len(bins) < 2:
        return  # an attribute that is the same for all items is no distribution
    is_named = bool(bins) and len(row["histogram"][0]) == 2
    shown, rest = (bins[:MOST_VALUES], bins[MOST_VALUES:]) if is_named else (bins, [])
    others = [("others", sum(count for _, count in rest))] if rest else []
    for name, count in [*shown, *others]:
        yield {**row, "bucket": name, "n": count, "metric": "items"}


def _bin(part: Sequence[Any]) -> str:
    if len(part) == 2 or part[0] == part[1]:
        return f"{part[0]:g}" if isinstance(part[0], int | float) else str(part[0])
    return f"{part[0]:.3g} to {part[1]:.3g}"


def _key(row: Mapping[str, Any], item: Any) -> Any:
    """Return the key of the item that a row names by id; an example that is in the row itself stays as it is."""
    return item if isinstance(item, dict) else f"{row['task']}/{row.get('language') or ''}/{item}"


def _examples(wanted: Iterable[str], runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    left = set(wanted)
    cells = {tuple(key.split("/", 2)[:2]) for key in left}
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        for cell in run.cells:
            # A row over all languages names items without their language: the first language that has it is shown.
            places = [code for code in (cell["language"], "") if (cell["task"], code) in cells]
            if cell["status"] != "ok" or not places:
                continue
            for record in run.records(cell):
                for code in places:
                    key = f"{cell['task']}/{code}/{record.id}"
                    if key in left:
                        known = found.setdefault(key, _example(record, cell["language"]))
                        if known["language"] == cell["language"]:
                            known["predictions"].setdefault(run.manifest["model"], _cut(record.prediction))
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
    """Return a field as text: the label of a classification, not the scores of all."""
    value = value["label"] if isinstance(value, Mapping) and "label" in value else value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    left = len(text) - LONGEST
    return text if left <= 0 else f"{text[:LONGEST]}… ({left:,} characters more)"
