"""The rows of a diagnosis on a board, and the examples that their buckets lead to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness import Run, UsageError
from harness.reporting.system_name import short_name
from harness_board.document import Board

__all__ = ["diagnosed", "with_diagnosis"]

KINDS = ("single", "pairwise", "data")
"""What a board shows of a diagnosis; rows of other kinds (calibration, confusion) belong to reports."""
KEPT = "kind task language system systems attribute bucket n metric value values ci difference p q examples".split()
MOST_VALUES = 12
"""Values of an attribute whose values are names; the others are counted together."""
SHOWN = 3
"""Examples of a bucket that a board keeps."""
LONGEST = 600
"""Characters of one text of an example; what follows stays in the run's records."""


def with_diagnosis(board: Board, rows: Iterable[Mapping[str, Any]], runs: Sequence[Run]) -> Board:
    """Return the board with rows of a diagnosis; the items that they name are taken from the runs' records."""
    keyed = []
    for row in rows:
        for part in _buckets(row) if row["kind"] in KINDS else ():
            kept = {name: part[name] for name in KEPT if part.get(name) is not None}
            view = " ".join(f"{name}={value}" for name, value in sorted((row.get("view") or {}).items()))
            kept |= {name: short_name(kept[name]) for name in ("system",) if name in kept}
            kept |= {name: [short_name(own) for own in kept[name]] for name in ("systems",) if name in kept}
            kept["attribute"] = f"{part['attribute']} ({view})" if view else part["attribute"]
            # Items are named by their ids; an example that is in the row itself stays as it is.
            place = f"{row['task']}/{row.get('language') or ''}"
            given = (part.get("examples") or [])[:SHOWN]
            kept["examples"] = [item if isinstance(item, dict) else f"{place}/{item}" for item in given]
            keyed.append(kept)
    if not keyed:
        return board
    wanted = {key for row in keyed for key in row["examples"] if isinstance(key, str)}
    return replace(board, diagnosis=tuple(keyed), examples=_examples(wanted, runs))


def diagnosed(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the diagnosis of every run, of the first against each other one, and of the first one's data.

    Raises `UsageError` for no runs; a pair that cannot be compared is skipped.
    """
    from harness import open_session
    from harness.analysis.diagnosis import DiagnosisOptions, diagnose

    if not runs:
        raise UsageError("--with-diagnosis needs runs: published scores have no items.")
    registry = open_session().registry
    options = DiagnosisOptions(examples=SHOWN)
    jobs: list[tuple[list[Run], bool]] = [([runs[0]], True), *(([run], False) for run in runs)]
    jobs += [([runs[0], other], False) for other in runs[1:]]
    rows: list[dict[str, Any]] = []
    for chosen, data_only in jobs:
        try:
            rows += diagnose(chosen, registry, options, data_only=data_only).rows()
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


def _examples(wanted: Iterable[str], runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    left = set(wanted)
    cells = {tuple(key.split("/", 2)[:2]) for key in left}
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        for cell in run.cells:
            # A row over all languages names items without their language: the first language that has it is shown.
            places = [code for code in (cell.language, "") if (cell.task, code) in cells]
            if cell.status != "ok" or not places:
                continue
            for record in run.records(cell):
                for code in places:
                    key = f"{cell.task}/{code}/{record.id}"
                    if key in left:
                        known = found.setdefault(
                            key,
                            {
                                "id": record.id,
                                "language": cell.language,
                                "inputs": {name: _cut(value) for name, value in _fields(record.fields)},
                                "reference": _cut(record.reference),
                                "predictions": {},
                            },
                        )
                        if known["language"] == cell.language:
                            known["predictions"].setdefault(
                                short_name(run.manifest.model), _cut(record.prediction)
                            )
    return found


def _fields(fields: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Return the parts of an item's input by name, where it has parts."""
    parts = fields.get("inputs")
    return parts.items() if isinstance(parts, Mapping) else fields.items()


def _cut(value: Any) -> str:
    """Return a field as text: the label of a classification, not the scores of all."""
    value = value["label"] if isinstance(value, Mapping) and "label" in value else value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    left = len(text) - LONGEST
    return text if left <= 0 else f"{text[:LONGEST]}… ({left:,} characters more)"
