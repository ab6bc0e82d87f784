"""Writes run folders from logged cells: one per model."""

from __future__ import annotations

import datetime
import hashlib
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from harness import Run, UnknownNameError, UsageError
from harness.analysis import rescore
from harness.languages import known_languages
from harness.registry import Registry, installed_version
from harness.reporting import counted
from harness.running import inputs_digest, inputs_text
from harness.storage import CellResult, ItemRecord, TaskSummary, file_digest
from harness_import.item_match import CellMatch, ItemMatcher, MatchedItem, SpecItems
from harness_import.logged import KIND, PREFIX, LoggedCell, LoggedItem, folder_names, safe_name

METHOD: Final = "logged"
"""The method of all imported cells: what reads answers of a method of ours does not read these."""
_LONGEST_CHOICE: Final = 80
"""Characters of a choice that is an answer itself; of longer ones, their position is."""
_MOST_NAMED: Final = 3
DISTRIBUTION: Final = "multilingual-harness"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What a user asked for."""

    output: Path
    parallel: bool
    """Whether ids of tasks of no spec mean the same item in every language."""
    data: str = "hub"
    model: str | None = None


@dataclass(slots=True, kw_only=True)
class _ImportedTask:
    """A task of a run: ours, or one of its own, with its cells."""

    spec_items: SpecItems | None
    metrics: Sequence[str] = ()
    """The logged metrics that all its items have."""
    cells: list[tuple[LoggedCell, list[MatchedItem] | list[LoggedItem], SpecItems | None]] = field(
        default_factory=list
    )


def write_runs(
    cells: Sequence[LoggedCell], matcher: ItemMatcher, registry: Registry, options: ImportOptions
) -> list[Run]:
    """Return the runs that were written: the output itself for one model, else a folder in it for each.

    Raises `UsageError` where the output holds anything, for a model that no log has, and for two logs of one cell.
    """
    matcher.check_names(cells)
    by_model: dict[str, list[LoggedCell]] = {}
    for cell in cells:
        by_model.setdefault(cell.model, []).append(cell)
    if options.model is not None:
        if options.model not in by_model:
            raise UnknownNameError("model of these logs", options.model, by_model)
        by_model = {options.model: by_model[options.model]}
    is_alone = len(by_model) == 1
    Run.at(options.output).check_new()
    folders = {model: Path() if is_alone else Path(name) for model, name in folder_names([*by_model]).items()}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.output.parent, prefix=f".{options.output.name}.") as place:
        whole = Path(place) / options.output.name
        for model, model_cells in by_model.items():
            _write_run(whole / folders[model], model_cells, matcher, registry, options)
        if options.output.is_dir():
            options.output.rmdir()
        whole.rename(options.output)
    return [Run(options.output / folder) for folder in folders.values()]


def _write_run(
    folder: Path,
    cells: Sequence[LoggedCell],
    matcher: ItemMatcher,
    registry: Registry,
    options: ImportOptions,
) -> None:
    tasks: dict[str, _ImportedTask] = {}
    origin = _origin(cells)
    notes = [_origin_note(origin)]
    complete: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for cell in cells:
        match = matcher.match(cell)
        notes += [*cell.notes, *filter(None, [match.note])]
        if match.spec_items is not None and not match.others:
            complete[cell.task, match.spec_items.entry.spec.task].append(len(match.matched))
        _sort_in(tasks, cell, match)
    notes += [
        f"{logged}: all {sum(sizes):,} items of {counted(len(sizes), 'cell')} are those of {ours!r}."
        for (logged, ours), sizes in complete.items()
    ]
    notes += _without_unscored(tasks)
    if not tasks:
        raise UsageError(f"Nothing of {cells[0].model!r} can be imported: {' '.join(notes[1:])}")
    run = Run.at(folder)
    run.create()
    results = [_write_cell(run, name, task, *entry) for name, task in tasks.items() for entry in task.cells]
    planned = [
        {key: getattr(result, key) for key in ("task", "language", "protocol", "method", "view", "digest")}
        for result in results
    ]
    run.write_manifest(_manifest(cells[0], tasks, origin, options) | {"cells": planned, "notes": notes})
    run.write_results(_results(cells[0], tasks, origin, options) | {"cells": results, "notes": notes})
    # Its metrics are those of `harness score`, so that scoring the folder again changes nothing.
    rescore(folder, registry)


def _without_unscored(tasks: dict[str, _ImportedTask]) -> list[str]:
    """Keep the metrics that are fractions of all items of a task, and tasks with one; return notes on the others."""
    notes = []
    for name, task in list(tasks.items()):
        task.metrics, dropped = _common_metrics(task)
        notes += [f"{name}: {metric} is not a fraction or not in all items: left out." for metric in dropped]
        if not task.metrics and task.spec_items is None:
            notes.append(f"{name}: no score of an item is a fraction: left out.")
            del tasks[name]
    return notes


def _write_cell(
    run: Run,
    name: str,
    task: _ImportedTask,
    cell: LoggedCell,
    items: Sequence[MatchedItem] | Sequence[LoggedItem],
    ours: SpecItems | None,
) -> CellResult:
    """Write the records of a cell; raises `UsageError` where another log had the same cell."""
    records = [_record(item, task.metrics) for item in items]
    identity = {
        "task": name,
        "language": cell.language,
        "protocol": cell.protocol,
        "method": METHOD,
        "view": dict(sorted(cell.view.items())),
    }
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
    numbers = {"n": len(records), "unparsed": sum(record.flags["unparsed"] for record in records)}
    result = CellResult.model_validate({**identity, **_cell_fields(cell, ours), **numbers, "digest": digest})
    if run.records_of(result).exists():
        raise UsageError(
            f"Two logs hold {cell.title} of {cell.model!r}: {cell.files[-1].name!r} is one of them.",
            hint="Give the files of one of the two.",
        )
    run.write_records(run.records_of(result), _with_labels(records) if ours is None else records)
    return result


def _sort_in(tasks: dict[str, _ImportedTask], cell: LoggedCell, match: CellMatch) -> None:
    """Put the items of a cell into our task and into a task of their own."""
    if match.spec_items is not None:
        name = match.spec_items.entry.spec.task
        ours = tasks.setdefault(name, _ImportedTask(spec_items=match.spec_items))
        ours.cells.append((cell, list(match.matched), match.spec_items))
    if match.others:
        name = f"{PREFIX}{safe_name(cell.task)}"
        own = tasks.setdefault(name, _ImportedTask(spec_items=None))
        own.cells.append((cell, list(match.others), None))


def _logged(item: MatchedItem | LoggedItem) -> LoggedItem:
    return item.item if isinstance(item, MatchedItem) else item


def _common_metrics(task: _ImportedTask) -> tuple[list[str], list[str]]:
    """Return the metrics that every item of a task has as a fraction, and the others."""
    items = [_logged(item) for _, cell_items, _ in task.cells for item in cell_items]
    names = dict.fromkeys(name for item in items for name in item.scores)
    kept = [name for name in names if all(abs(item.scores.get(name, 2.0)) <= 1 for item in items)]
    return kept, [name for name in names if name not in kept]


def _record(item: MatchedItem | LoggedItem, metrics: Sequence[str]) -> ItemRecord:
    logged = _logged(item)
    scores = {name: logged.scores[name] for name in metrics}
    cluster = logged.cluster
    if isinstance(item, MatchedItem):
        example = item.example
        identifier, prediction = example.id, {**item.prediction, "logged": scores}
        cluster, reference, text = example.cluster, item.reference, inputs_text(example)
        digest = inputs_digest(example)
    else:
        answer, gold = (_readable(value, logged.choices) for value in (logged.answer, logged.gold))
        identifier, prediction = logged.id, {"text": answer, "logged": scores}
        reference = {"text": None} if gold is None else gold
        text = json.dumps(logged.fields, ensure_ascii=False, sort_keys=True, default=str)
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    return ItemRecord(
        id=identifier,
        inputs_digest=digest,
        prediction=prediction,
        reference=reference,
        scores={},
        cluster=cluster,
        group=item.example.group if isinstance(item, MatchedItem) else None,
        tags=dict(item.example.meta) if isinstance(item, MatchedItem) else {},
        flags={"truncated": False, "unparsed": logged.unparsed},
        inputs=text,
    )


def _readable(value: str | None, choices: Sequence[str]) -> str | None:
    """Return the text of a choice where all of them are short and differ, else the value itself."""
    is_position = value is not None and value.isdecimal() and int(value) < len(choices)
    if not is_position or len(set(choices)) < len(choices) or max(map(len, choices)) > _LONGEST_CHOICE:
        return value
    return choices[int(str(value))]


def _with_labels(records: Sequence[ItemRecord]) -> list[ItemRecord]:
    """Return the records with their answers as labels, where an answer is right exactly if it equals the gold one."""
    is_labelled = all(
        isinstance(record.reference, str)
        and (record.prediction["text"] == record.reference) == (score == 1.0)
        and score in {0.0, 1.0}
        for record in records
        for score in [next(iter(record.prediction["logged"].values()))]
    )
    name = "label" if is_labelled else "text"
    return [
        replace(record, prediction={name: record.prediction["text"], "logged": record.prediction["logged"]})
        for record in records
    ]


def _cell_fields(cell: LoggedCell, ours: SpecItems | None) -> dict[str, Any]:
    """Return the fields of a cell's result besides its identity and numbers."""
    log: dict[str, Any] = {"origin": f"log of {cell.harness}", "files": [path.name for path in cell.files]}
    log |= {"pinned": True, "note": ""}  # which reports look at
    split = cell.view.get("split", "test")
    shared: dict[str, Any] = {"fit": "none", "seed": cell.seed, "status": "ok", "metrics": {}, "split": split}
    if ours is None:
        return {**shared, "version": cell.task_version, "data": log}
    spec = ours.entry.spec
    data = {"data": {**ours.data.to_json(), "log": log}, "size": len(ours.examples)}
    return {**shared, **data, "version": spec.version, "provenance": spec.provenance_of(cell.language)}


def _summary(task: _ImportedTask, options: ImportOptions) -> TaskSummary:
    codes = dict.fromkeys(cell.language for cell, _, _ in task.cells)
    table = known_languages()
    languages = {code: (table.get(code).family, table.get(code).script) for code in codes if code in table}
    # Zyyy is the code of ISO 15924 for an undetermined script.
    languages |= {code: ("undetermined", "Zyyy") for code in codes if code not in table}
    logged = [f"{PREFIX}{metric}" for metric in task.metrics]
    if task.spec_items is None:
        return TaskSummary(
            kind=KIND,
            metrics=logged,
            headline=logged[:1],
            parallel=options.parallel,
            source="en" if "en" in codes else None,
            names={code: "Undetermined" for code in codes if code not in table},
            languages=languages,
        )
    spec = task.spec_items.entry.spec
    return TaskSummary(
        kind=spec.kind,
        metrics=[*spec.metrics, *logged],
        headline=list(spec.headline),
        metric_options=dict(spec.metric_options),
        labels=list(spec.label_names),
        parallel=spec.parallel,
        unpaired=[code for code in spec.unpaired if code in codes],
        chance=spec.chance_level,
        source=spec.gap_source,
        axes=list(spec.axes),
        languages=languages,
    )


def _origin(cells: Sequence[LoggedCell]) -> dict[str, Any]:
    """Return where the scores of a run come from: harness, version, and the digest of every file."""
    files = dict.fromkeys(path for cell in cells for path in cell.files)
    return {
        "harness": ", ".join(dict.fromkeys(cell.harness for cell in cells)),
        "version": ", ".join(dict.fromkeys(cell.version for cell in cells)),
        "files": [{"name": path.name, "sha256": file_digest(path)} for path in files],
    }


def _origin_note(origin: Mapping[str, Any]) -> str:
    names = [file["name"] for file in origin["files"]]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    source = f"{origin['harness']} {origin['version']}: {', '.join(names[:_MOST_NAMED])}{more}"
    return f"Imported from {source}. Answers and scores are as logged."


def _manifest(
    cell: LoggedCell, tasks: Mapping[str, _ImportedTask], origin: Mapping[str, Any], options: ImportOptions
) -> dict[str, Any]:
    specs = {name: task.spec_items.entry.spec for name, task in tasks.items() if task.spec_items is not None}
    model = f"{cell.harness}:{cell.model}"
    return {
        "schema": 1,
        "created": _now(),
        "command": sys.argv,
        "config": {"tasks": list(tasks), "model": model, "options": {}, "limit": None},
        "model": model,
        "tasks": {name: _summary(task, options) for name, task in tasks.items()},
        "specs": {name: spec.model_dump(mode="json", exclude_defaults=True) for name, spec in specs.items()},
        "versions": {DISTRIBUTION: installed_version(DISTRIBUTION), origin["harness"]: origin["version"]},
        "imported": origin,
        "identity": {f"sha256 of {file['name']}": file["sha256"] for file in origin["files"]},
    }


def _results(
    cell: LoggedCell, tasks: Mapping[str, _ImportedTask], origin: Mapping[str, Any], options: ImportOptions
) -> dict[str, Any]:
    data = options.data if any(task.spec_items for task in tasks.values()) else "logged"
    version = installed_version(DISTRIBUTION)
    metadata = {"scores": f"imported from {origin['harness']} {origin['version']}"}
    model = {"adapter": cell.harness, "ref": cell.model, "parameters": cell.parameters, "metadata": metadata}
    run = {"id": options.output.name, "created": _now(), "harness": version, "data": data}
    return {"schema": 1, "run": run, "model": model}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
