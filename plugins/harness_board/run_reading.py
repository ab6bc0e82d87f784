"""Runs on a board: a system for every protocol and view that a run has, and the rows of a diagnosis with examples.

Languages that fragments added to tasks, and test sets made by machine, are shown, marked, and in no published mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import Any

from harness import Run, UsageError, grouped
from harness.languages import known_languages, recorded_name
from harness.reporting import ADDED, PROVENANCE_MARKS, conditions_of, is_added, origin_mark
from harness.scores import CellGroups, cells_of_row, group_cells
from harness.storage import ItemRecord, TaskScore
from harness_board.document import Board, Score, System, TaskColumn

OTHER_SPLIT = "*"
LEGEND = {
    OTHER_SPLIT: "scored on another split than test (hover shows in which system)",
    **{mark: f"{made} test items" for made, mark in PROVENANCE_MARKS.items()},
    ADDED: "added to the task by others, in none of its means",
}
KINDS = ("single", "pairwise", "data")
"""What a board shows of a diagnosis; rows of other kinds (calibration, confusion) belong to reports."""
KEPT = "kind task language system systems attribute bucket n metric value values ci difference p q examples".split()
MOST_VALUES = 12
"""Values of an attribute whose values are names; the others are counted together."""
SHOWN = 3
"""Examples of a bucket that a board keeps."""
LONGEST = 600
"""Characters of one text of an example; what follows stays in the run's records."""


def run_tasks(run: Run) -> list[TaskColumn]:
    """Return the tasks of a run, as its manifest describes them."""
    columns = []
    for task, spec in run.manifest.tasks.items():
        rows = (row for row in run.results.tasks if row.task == task)
        scored = dict.fromkeys(code for row in rows for code in row.by_language)
        described = {
            code: {"name": recorded_name(code, [spec.names]), "family": family, "script": script}
            for code, (family, script) in spec.languages.items()
            if code not in known_languages()
        }
        columns.append(
            TaskColumn(
                task=task,
                metrics=tuple(spec.metrics),
                headline=tuple(spec.headline),
                languages=tuple(spec.published_languages or scored),
                source=spec.source,
                chance=_points(spec.chance),
                added=tuple(code for code in scored if is_added(code, spec)),
                marks=language_marks(run, task),
                described=described,
            )
        )
    return columns


def language_marks(run: Run, task: str) -> dict[str, str]:
    """Return the marks of a task's languages; those without marks are skipped."""
    marks: dict[str, str] = {}
    for cell in run.cells:
        if cell.task == task and cell.status == "ok":
            split = OTHER_SPLIT if cell.stands_in else ""
            letters = marks.get(cell.language, "") + split + origin_mark(cell, run.manifest.tasks[task])
            marks[cell.language] = "".join(dict.fromkeys(letters))
    return {code: letters for code, letters in marks.items() if letters}


def run_systems(run: Run) -> list[System]:
    """Return the systems of a run; conditions that cross every language (an axis) are left to its report."""
    plain = (row for row in run.results.tasks if not set(row.view) & set(run.manifest.tasks[row.task].axes))
    conditions = grouped(((row.protocol, conditions_of(row.view)), row) for row in plain)
    groups = group_cells(run.cells)
    model, about = run.results.model, run.results.run
    systems = []
    for (protocol, view), rows in conditions.items():
        methods = sorted({row.method for row in rows})
        # Where a task was run with several methods, each is a system.
        several = len({(row.task, row.method) for row in rows}) > len({row.task for row in rows})
        for chosen in [[method] for method in methods] if several else [methods]:
            systems.append(
                System(
                    label=run.manifest.model_name,
                    path=run.manifest.model,
                    origin="run",
                    protocol=_true_protocol(protocol, rows, run),
                    method=" + ".join(chosen),
                    adapter=model.adapter,
                    view=view,
                    run=about.id,
                    year=int(about.created[:4]),
                    scores=tuple(_score(row, run, groups) for row in rows if row.method in chosen),
                    absences=_absences(run, protocol),
                    metadata={"parameters": model.parameters} if model.parameters else {},
                )
            )
    return systems


def _true_protocol(protocol: str, rows: Sequence[TaskScore], run: Run) -> str:
    """Return ``in_language`` where a system is tested in its training language alone: nothing is transferred."""
    is_transfer = any(set(row.by_language) - {run.manifest.tasks[row.task].source} for row in rows)
    return protocol if is_transfer or protocol != "zero_shot_transfer" else "in_language"


def created_on(moment: str) -> date:
    """Return the day of a date and time in ISO 8601."""
    return date.fromisoformat(moment[:10])


def _score(row: TaskScore, run: Run, groups: CellGroups) -> Score:
    cells = cells_of_row(row, groups)
    # An error over items is not one over seeds.
    values = {code: own[0].metrics[row.metric] for code, own in cells.items() if len(own) == 1}
    other_split = [code for code, own in cells.items() if any(cell.stands_in for cell in own)]
    # Languages that fragments added are not compared; the error of a mean that counts them is not kept.
    expected = set(run.manifest.tasks[row.task].published_languages) or set(row.by_language)
    published = [value for code, value in row.by_language.items() if code in expected]
    is_published = len(published) == len(row.by_language)
    mean = row.value if is_published else sum(published) / len(published) if published else None
    low, high = (row.ci if is_published else None) or (None, None)
    ends = {code: value.ci for code, value in values.items() if value.ci}
    return Score(
        task=row.task,
        metric=row.metric,
        mean=_points(mean),
        se=_points(row.se if is_published else None),
        low=_points(low),
        high=_points(high),
        by_language={code: value * 100 for code, value in row.by_language.items()},
        se_by_language={code: value.se * 100 for code, value in values.items() if value.se is not None},
        interval_by_language={code: (low * 100, high * 100) for code, (low, high) in ends.items()},
        is_whole=expected <= set(row.by_language),
        note=f"scored on another split than test: {' '.join(other_split)}" if other_split else "",
    )


def _points(value: float | None) -> float | None:
    return None if value is None else value * 100


def _absences(run: Run, protocol: str) -> dict[str, str]:
    reasons: dict[str, str] = {}
    for cell in run.cells:
        if cell.status != "ok" and cell.protocol in {protocol, None}:
            reasons.setdefault(f"{cell.task}:{cell.language}", f"{cell.status}: {cell.reason}"[:300])
    return reasons


def with_diagnosis(board: Board, rows: Iterable[Mapping[str, Any]], runs: Sequence[Run]) -> Board:
    """Return the board with rows of a diagnosis; the items that they name are taken from the runs' records."""
    buckets = []
    for row in rows:
        view = conditions_of(row.get("view") or {})
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
    rows = diagnose(runs[:1], registry, options, data_only=True).rows()
    rows += [row for run in runs for row in diagnose([run], registry, options).rows()]
    for other in runs[1:]:
        with suppress(UsageError):
            rows += diagnose([runs[0], other], registry, options).rows()
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
