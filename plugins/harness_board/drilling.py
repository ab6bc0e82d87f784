"""The rows of a diagnosis on a board, and the examples that their buckets lead to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from harness import Run, UsageError
from harness.storage import ItemRecord
from harness_board.document import Board
from harness_board.run_reading import view_text

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
    buckets = []
    for row in rows:
        view = view_text(row.get("view") or {})
        for bucket in _buckets(row) if row["kind"] in KINDS else ():
            attribute = f"{row['attribute']} ({view})" if view else row["attribute"]
            # Items are named by their ids; an example that is in the row itself stays as it is.
            cell = f"{row['task']}/{row.get('language') or ''}"
            examples = (row.get("examples") or [])[:SHOWN]
            examples = [item if isinstance(item, dict) else f"{cell}/{item}" for item in examples]
            values = {name: bucket[name] for name in KEPT if bucket.get(name) is not None}
            buckets.append(values | {"attribute": attribute, "examples": examples})
    if not buckets:
        return board
    keys = {key for row in buckets for key in row["examples"] if isinstance(key, str)}
    return replace(board, diagnosis=tuple(buckets), examples=_examples(keys, runs))


def diagnosed(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the diagnosis of every run, of the first against each other one, and of the first one's data.

    Raises `UsageError` for no runs; a pair that cannot be compared is skipped.
    """
    from harness import open_session
    from harness.analysis import DiagnosisOptions, diagnose

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
    bins = [(_bin(edges), edges[-1]) for edges in row["histogram"]]
    if len(bins) < 2:
        return  # an attribute that is the same for all items is no distribution
    if len(row["histogram"][0]) == 2 and len(bins) > MOST_VALUES:
        bins[MOST_VALUES:] = [("others", sum(count for _, count in bins[MOST_VALUES:]))]
    for name, count in bins:
        yield {**row, "bucket": name, "n": count, "metric": "items"}


def _bin(edges: Sequence[Any]) -> str:
    if len(edges) == 2 or edges[0] == edges[1]:
        return f"{edges[0]:g}" if isinstance(edges[0], int | float) else str(edges[0])
    return f"{edges[0]:.3g} to {edges[1]:.3g}"


def _examples(keys: Set[str], runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    cells = {tuple(key.split("/", 2)[:2]) for key in keys}
    examples: dict[str, dict[str, Any]] = {}
    for run in runs:
        for cell in run.cells:
            # A row over all languages names items without their language: the first language that has it is shown.
            codes = [code for code in (cell.language, "") if (cell.task, code) in cells]
            for record in run.records(cell) if cell.status == "ok" and codes else ():
                for key in (f"{cell.task}/{code}/{record.id}" for code in codes):
                    if key not in keys:
                        continue
                    if key not in examples:
                        examples[key] = _example(record, cell.language)
                    if examples[key]["language"] == cell.language:
                        predictions = examples[key]["predictions"]
                        predictions.setdefault(run.manifest.model_name, _cut(record.prediction))
    return examples


def _example(record: ItemRecord, language: str) -> dict[str, Any]:
    inputs = record.fields.get("inputs")
    fields = inputs if isinstance(inputs, Mapping) else record.fields
    return {
        "id": record.id,
        "language": language,
        "inputs": {name: _cut(value) for name, value in fields.items()},
        "reference": _cut(record.reference),
        "predictions": {},
    }


def _cut(value: Any) -> str:
    """Return a field as text: the label of a classification, not the scores of all."""
    value = value["label"] if isinstance(value, Mapping) and "label" in value else value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    left = len(text) - LONGEST
    return text if left <= 0 else f"{text[:LONGEST]}… ({left:,} characters more)"
