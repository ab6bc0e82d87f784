"""Makes one run of several: the shards of a plan, or runs of one model over different tasks and languages.

Runs may be merged that are of the same model, the same data and specs, and the same settings of what is compared.
"""

from __future__ import annotations

import datetime
import json
import math
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.analysis.systems import harness_versions, item_view
from harness.data.translation.opening import translator_names
from harness.errors import DataError, StorageError, UsageError
from harness.metrics.metric import Metric
from harness.planning.resolution import Resolution, read_resolution
from harness.planning.run_config import settings
from harness.running.summaries import empty_result
from harness.scores.aggregation import aggregate_tasks
from harness.scores.task_intervals import add_task_intervals
from harness.specs.selection import EXCLUSION_MARK
from harness.storage.file_lock import FileLock
from harness.storage.files import file_digest
from harness.storage.results import CellResult, Manifest, RunResults, TaskSummary
from harness.storage.run_folder import BY_LANGUAGE, LOCK, RESULTS, STARTED, Run
from harness.table import NamedTable, grouped

TOLERANCE = 1e-5
"""Two machines may sum in another order; the same model's scores differ by less than this."""


def merge_runs(
    paths: Sequence[Path], output: Path, metrics: NamedTable[Metric], *, incomplete: bool = False
) -> list[str]:
    """Write a run folder that holds the cells of all runs, and return the notes about it.

    The folder appears whole or not at all. Their baselines are merged too. A cell that several runs
    have is taken from the first that finished it.

    Args:
        paths: Run folders.
        output: The new run folder; it may exist, empty.
        metrics: The registry's, for the intervals of means over languages.
        incomplete: Whether shards may be missing; their cells are then skipped, with the reason.

    Raises:
        UsageError: For a folder that is no run or named twice, for runs that differ in model, data, specs,
            settings or the scores of a cell, for missing shards, and for an output that holds anything.
        DataError: For records that are missing.
        StorageError: Where the output cannot be written.
    """
    _check_output(output)
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("A run was named twice; each run can be merged once.")
    for path in paths:
        _check_ended(path)
    runs = [Run(path) for path in paths]
    merged = _merge(runs, output.absolute().name, metrics, incomplete=incomplete)
    baselines = {
        name: _merge(baseline_runs, name, metrics, incomplete=incomplete)
        for name, baseline_runs in _baselines(runs).items()
    }
    try:
        _place(merged, baselines, output.absolute())
    except OSError as error:
        raise StorageError(
            f"The merged run {str(output)!r} cannot be written: {error}.", hint="Nothing was written."
        ) from error
    return merged.notes


def _check_ended(path: Path) -> None:
    """Raise `UsageError` for a run that has not ended."""
    lock = FileLock(path / LOCK)
    if lock.is_held():
        raise UsageError(
            f"The run {str(path)!r} is still running: {lock.holder()}.", hint="Merge it once it has ended."
        )


def _check_output(output: Path) -> None:
    Run.at(output).check_usable()
    if output.is_dir() and any(output.iterdir()):
        raise UsageError(f"The folder {str(output)!r} is not empty.", hint="Give a new folder with --output.")


def _baselines(runs: Sequence[Run]) -> dict[str, list[Run]]:
    files = (file for run in runs for file in sorted((run.path / "baselines").glob("*/results.json")))
    return grouped((file.parent.name, Run(file.parent)) for file in files)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Merged:
    """A merged run before it is written."""

    runs: Sequence[Run]
    origins: Mapping[str, Run]
    """By the digest of the cell: the run that it comes from."""
    manifest: Manifest
    results: RunResults
    notes: list[str]


def _merge(runs: Sequence[Run], name: str, metrics: NamedTable[Metric], *, incomplete: bool) -> _Merged:
    check_compatible(runs)
    plan = _whole_plan(runs)
    lost = _lost_cells(runs, plan)
    count = plan["count"] if plan else 0
    shards = sorted({cell["shard"] for cell in lost})
    if lost and not incomplete:
        missing = ", ".join(f"{shard}/{count}" for shard in shards)
        raise UsageError(
            f"The shards {missing} of the plan are missing.",
            hint="Name their runs too, or give --incomplete to merge without them.",
        )
    by_digest, found_notes = _cells_by_digest(runs)
    cells = [cell for cell, _ in by_digest.values()]
    tasks = list(dict.fromkeys(cell.task for cell in cells))
    cells.sort(key=lambda cell: tasks.index(cell.task))
    absent = [_absent(cell, count) for cell in lost]
    if plan:
        position = {cell["digest"]: number for number, cell in enumerate(plan["cells"])}
        cells = sorted([*cells, *absent], key=lambda cell: position.get(cell.digest, len(position)))
    cells += _skipped(runs)
    notes = [
        f"shard {shard}/{count} was not merged: {sum(cell['shard'] == shard for cell in lost)} cells are skipped"
        for shard in shards
    ]
    versions = harness_versions(runs)
    if len(versions) > 1:
        notes.append(f"parts of this run were made by the harness {' and '.join(versions)}")
    for setting, values in differing_settings([run.manifest for run in runs]).items():
        by_task = "; ".join(f"{value} for {', '.join(task_names)}" for value, task_names in values.items())
        notes.append(f"--{setting} differs between tasks: {by_task}")
    manifest = Manifest.model_validate(merged_manifest(runs, cells, plan if lost else None))
    origins = {digest: run for digest, (_, run) in by_digest.items()}
    results = add_task_intervals(
        _results(runs, name, cells, manifest, notes),
        manifest.tasks,
        manifest.suites,
        lambda cell: origins[cell.digest].records_of(cell),
        metrics,
    )
    found_notes += notes
    stopped = sum(cell.has("data") and cell.status == "skipped" for cell in cells)
    if stopped:
        found_notes.append(f"{stopped} cells were never run: their run was stopped before them")
    return _Merged(runs=runs, origins=origins, manifest=manifest, results=results, notes=found_notes)


# Shards -----------------------------------------------------------------------------------------------


def _whole_plan(runs: Sequence[Run]) -> dict[str, Any] | None:
    """Return the plan that runs are shards of, None where none is; raises `UsageError` for shards of several."""
    shards = [run for run in runs if run.manifest.plan_cells]
    if not shards:
        return None
    numbers = {run.path: str(run.manifest.shard).partition("/") for run in shards}
    first = shards[0]
    for run in shards:
        paths = f"{str(first.path)!r} and {str(run.path)!r}"
        count, other = numbers[first.path][2], numbers[run.path][2]
        if run.manifest.plan != first.manifest.plan:
            raise UsageError(
                f"The runs {paths} are shards of different plans.",
                hint="Give every shard the same tasks, languages and settings.",
            )
        if count != other:
            raise UsageError(
                f"The runs {paths} divide their plan differently: into {count} shards and into {other}."
            )
    return {
        "digest": first.manifest.plan,
        "count": int(numbers[first.path][2]),
        "cells": first.manifest.plan_cells,
        "indices": {int(index) for indices, *_ in numbers.values() for index in indices.split("+")},
    }


def _lost_cells(runs: Sequence[Run], plan: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    planned = {cell.digest for run in runs for cell in run.cells if _is_planned(cell)}
    return [] if plan is None else [cell for cell in plan["cells"] if cell["digest"] not in planned]


def _is_planned(cell: CellResult) -> bool:
    """Whether a run had the cell; an incomplete merge names those of other shards too, without data."""
    return cell.has("digest") and cell.has("data")


def _absent(cell: Mapping[str, Any], count: int) -> CellResult:
    names = ("task", "version", "language", "protocol", "method", "view", "seed", "digest")
    reason = f"in shard {cell['shard']}/{count}, which was not merged"
    return CellResult(
        **{name: cell[name] for name in names}, fit=None, prompt=None, **empty_result("skipped", reason)
    )


# Cells ------------------------------------------------------------------------------------------------


def _cells_by_digest(runs: Sequence[Run]) -> tuple[dict[str, tuple[CellResult, Run]], list[str]]:
    """Return by digest every cell with its run, a finished one where there is one, and notes on repetitions."""
    by_digest: dict[str, tuple[CellResult, Run]] = {}
    repeated: dict[str, int] = {}
    for run in runs:
        for cell in run.cells:
            if not _is_planned(cell):
                continue
            before = by_digest.get(cell.digest)
            if before is None or (before[0].status != "ok" and cell.status == "ok"):
                by_digest[cell.digest] = (cell, run)
            elif before[0].status == cell.status == "ok":
                if not same_scores(before[0], cell):
                    raise UsageError(
                        f"The runs {str(before[1].path)!r} and {str(run.path)!r} have different scores of "
                        f"{cell.task}:{cell.language} ({cell.protocol}): {_scores(before[0])} and "
                        f"{_scores(cell)}.",
                        hint="Omit one of them; harness compare RUN RUN shows the items that differ.",
                    )
                repeated[str(run.path)] = repeated.get(str(run.path), 0) + 1
    return by_digest, [
        f"{count} cells of {path} are in an earlier run, too" for path, count in repeated.items()
    ]


def _scores(cell: CellResult) -> str:
    values = ", ".join(f"{name} {score.value:.6f}" for name, score in cell.metrics.items())
    return f"{values} over {cell.n} items"


def _skipped(runs: Sequence[Run]) -> list[CellResult]:
    """Return the cells that the plans skipped, each once, without those that another run did."""
    by_run = [{(cell.task, cell.language) for cell in run.cells if _is_planned(cell)} for run in runs]
    skipped: dict[str, CellResult] = {}
    for run, planned in zip(runs, by_run, strict=True):
        for cell in run.cells:
            pair = (cell.task, cell.language)
            if cell.has("digest") or (
                pair not in planned and any(_does(candidate, cell) for candidate in runs)
            ):
                continue
            skipped.setdefault(repr([*pair, cell.protocol, cell.view, cell.reason]), cell)
    return list(skipped.values())


def _does(run: Run, skipped: CellResult) -> bool:
    return any(
        _is_planned(cell)
        and (cell.task, cell.language) == (skipped.task, skipped.language)
        and skipped.protocol in {None, cell.protocol}
        and skipped.view.items() <= cell.view.items()
        for cell in run.cells
    )


# Documents --------------------------------------------------------------------------------------------


def _results(
    runs: Sequence[Run], name: str, cells: Sequence[CellResult], manifest: Manifest, notes: Sequence[str]
) -> RunResults:
    heads = [run.results.run for run in runs]
    requests: Counter[str] = Counter()
    for head in heads:
        requests.update(head.requests)
    # Of a part that was merged itself, without what was missing then.
    run_notes = [
        note
        for run in runs
        for note in run.results.notes
        if not (note.startswith("shard ") and " was not merged: " in note)
    ]
    opened = (run for run in runs if any(cell.status == "ok" for cell in run.cells))
    fits = {digest: fit for run in reversed(runs) for digest, fit in run.results.fits.items()}
    order = dict.fromkeys([*(cell.fit for cell in cells), *fits])
    return runs[0].results.changed(
        run=heads[0].changed(
            id=name,
            created=min(head.created for head in heads),
            seconds=round(sum(head.seconds for head in heads), 2),
            requests=dict(requests),
        ),
        model=next(opened, runs[0]).results.model,
        fits={digest: fits[digest] for digest in order if digest is not None and digest in fits},
        notes=list(dict.fromkeys([*run_notes, *notes])),
        cells=list(cells),
        tasks=aggregate_tasks(cells, manifest.tasks),
    )


# Files ------------------------------------------------------------------------------------------------


def _place(merged: _Merged, baselines: Mapping[str, _Merged], output: Path) -> None:
    """Write everything next to the output folder and move it there as the last step."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.merging-") as scratch:
        folder = Path(scratch) / "run"
        for name, content in baselines.items():
            _write(content, Run.at(folder / "baselines" / name))
        _write(merged, Run.at(folder))
        folder.replace(output)


def _write(merged: _Merged, folder: Run) -> None:
    folder.create()
    for cell in merged.results.cells:
        run = merged.origins.get(cell.digest)
        if run is not None:
            _copy_cell(run, cell, folder)
    logs = [path for run in merged.runs for path in _journals(run)]
    for number, path in enumerate(logs):
        _copy(path, folder.path / "journal" / f"{number}.log")
    folder.write_manifest(merged.manifest)
    folder.write_results(merged.results)


def _copy_cell(run: Run, cell: CellResult, folder: Run) -> None:
    source, digest = run.records_of(cell), cell.digest
    if cell.status == "ok":
        if not source.is_file():
            raise DataError(
                f"The records {str(source)!r} of a finished cell are missing, so the run is not whole."
            )
        _copy(source, folder.records_path(cell.task, cell.language, digest))
    for name in (f"failures/{digest}.txt", f"cells/{digest}.json", f"cells/{digest}{STARTED}"):
        if (run.path / name).is_file():
            _copy(run.path / name, folder.path / name)


def _journals(run: Run) -> list[Path]:
    logs = (run.path / "journal").glob("*.log")
    return sorted(logs, key=lambda path: (len(path.stem), path.stem))


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def check_compatible(runs: Sequence[Run]) -> None:
    """Raise `UsageError` for the first thing in which a run differs from an earlier one and must not."""
    first_values: dict[tuple[str, ...], tuple[str, Run]] = {}
    merged: Resolution | None = None
    owners: dict[tuple[str, ...], Run] = {}
    for run in runs:
        for title, key, value in _facts(run):
            text = json.dumps(value, ensure_ascii=False, sort_keys=True)
            before, first = first_values.setdefault((title, *key), (text, run))
            if before != text:
                detail = "" if len(before) + len(text) > 200 else f": {before} and {text}"
                raise _differs(first, run, f"{title}{detail}")
        if run.manifest.resolved:
            resolution = read_resolution(run.manifest.resolved)
            for here, there in [] if merged is None else resolution.diff(merged):
                if there is not None:
                    difference = f"the {here.subject}: {here.difference(there, 'the former')}"
                    raise _differs(owners[here.key], run, difference)
            merged = resolution if merged is None else merged.joined(resolution)
            owners = {entry.key: run for entry in resolution.entries} | owners


def _differs(first: Run, run: Run, difference: str) -> UsageError:
    return UsageError(
        f"The runs {str(first.path)!r} and {str(run.path)!r} cannot be merged: they differ in {difference}.",
        hint="Compare them instead: harness compare RUN RUN",
    )


def _facts(run: Run) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """Yield a noun phrase for the message, a further key, and the value that all runs with this key must share."""
    yield from _model_facts(run)
    config = run.manifest.config
    yield "the place of the data (--data)", (), run.results.run.data
    for name, setting in settings().items():
        if setting.merged in {"same", "task"}:
            # How many items a cell has must agree only between runs that share a task.
            for task in [""] if setting.merged == "same" else run.manifest.tasks:
                yield f"the setting {name!r}", (task,), config.get(name)
    for name, code in run.manifest.code.items():
        yield f"the {name}", (), code
    for task, summary in run.manifest.tasks.items():
        for name, value in summary.to_json().items():
            if name not in BY_LANGUAGE:
                yield f"{name!r} of the task {task!r}", (), value
    for name, reference in translator_names(config.get("translators") or ()).items():
        yield f"what the translator {name!r} is", (), reference
    for name, engine in run.manifest.translators.items():
        yield f"the model of the translator {name!r}", (), engine["fingerprint"]
    for cell in run.cells:
        cell_name = f"{cell.task!r} in {cell.language!r}"
        if cell.data:
            yield f"the test data of {cell_name}", (item_view(run, cell),), cell.data["digest"]
        if cell.status == "ok":
            key = (json.dumps(cell.view, sort_keys=True), *map(str, (cell.protocol, cell.method, cell.seed)))
            yield f"the training or prompt of {cell_name}", key, cell.digest


def _model_facts(run: Run) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    model = run.results.model
    yield "the adapter", (), model.adapter
    metadata = model.metadata
    if not any(cell.status == "ok" for cell in run.cells):
        # Nothing is known of a model that was never opened; what it would have answered is not there either.
        return
    yield "what is known of the model", (), sorted(metadata)
    for name, value in metadata.items():
        yield f"the model ({name})", (), value


def same_scores(first: CellResult, second: CellResult) -> bool:
    """Whether two finished cells have the same number of items and the same metrics, within 1e-5."""
    first_metrics, second_metrics = first.metrics, second.metrics
    return (
        first.n == second.n
        and first_metrics.keys() == second_metrics.keys()
        and all(
            math.isclose(first_metrics[name].value, second_metrics[name].value, rel_tol=0, abs_tol=TOLERANCE)
            for name in first_metrics
        )
    )


def differing_settings(manifests: Sequence[Manifest]) -> dict[str, dict[str, list[str]]]:
    """Return the settings that differ between tasks, such as ``limit``: tasks by value."""
    differing = {}
    for name in (name for name, setting in settings().items() if setting.merged == "task"):
        tasks: dict[str, list[str]] = {}
        for manifest in manifests:
            value = manifest.config.get(name)
            tasks.setdefault("not set" if value is None else str(value), []).extend(manifest.tasks)
        if len(tasks) > 1:
            differing[name] = {value: list(dict.fromkeys(names)) for value, names in tasks.items()}
    return differing


def merged_manifest(
    runs: Sequence[Run], cells: Sequence[CellResult], incomplete: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the ``manifest.json`` of a merged run.

    Args:
        runs: The parts; the versions and the machine are the first one's, `merged_from` names the others.
        cells: The cells of the merged run, in order.
        incomplete: The plan that the runs are shards of, where some shards are missing.
    """
    manifests = [run.manifest for run in runs]
    shard_keys = {"shard", "plan", "plan_cells", "resolved"}
    first = {name: value for name, value in manifests[0].to_json().items() if name not in shard_keys}
    identities = {cell["digest"]: cell for manifest in manifests for cell in manifest.cells}
    digests = [cell.digest for cell in cells if cell.digest in identities]
    published = [item for manifest in manifests for item in manifest.published]
    merged = {
        **first,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
        "config": _config(manifests),
        "tasks": _tasks(manifests, cells),
        "suites": _suites(manifests),
        "published": [item for number, item in enumerate(published) if item not in published[:number]],
        "code": _united(manifests, "code"),
        "specs": _united(manifests, "specs"),
        "cells": [identities[digest] for digest in digests],
        "fits": list(dict.fromkeys(title for manifest in manifests for title in manifest.fits)),
        "notes": list(dict.fromkeys(note for item in manifests for note in item.notes)),
        "merged_from": [_source(run) for run in runs],
    }
    translators = {name: item for manifest in manifests for name, item in manifest.translators.items()}
    if translators:
        merged["translators"] = translators
    if all(manifest.resolved for manifest in manifests):
        merged["resolved"] = _resolved(manifests)
    if incomplete is not None:
        indices = "+".join(map(str, sorted(incomplete["indices"])))
        merged |= {
            "shard": f"{indices}/{incomplete['count']}",
            "plan": incomplete["digest"],
            "plan_cells": incomplete["cells"],
        }
    return merged


def _united(records: Sequence[Manifest | TaskSummary], name: str) -> dict[str, Any]:
    """Return the entries of a mapping that all have, those of the first one where several have a key."""
    return {key: value for record in reversed(records) for key, value in getattr(record, name).items()}


def _source(run: Run) -> dict[str, Any]:
    """Return where a part came from: its name, time, machine and shard, and the digest of its results."""
    head = run.results.run
    host = run.manifest.host or run.manifest.hardware.get("host")
    return {
        "id": head.id,
        "path": str(run.path),
        "created": head.created,
        "seconds": head.seconds,
        "host": host,
        "shard": run.manifest.shard,
        "results": file_digest(run.path / RESULTS),
        **({"merged_from": run.manifest.merged_from} if run.manifest.merged_from else {}),
    }


def _config(manifests: Sequence[Manifest]) -> dict[str, Any]:
    """Return the configuration of all: what was asked for is united.

    Languages are all where one run took all, or all but some.
    """
    configs = [manifest.config for manifest in manifests]
    config = {name: value for name, value in configs[0].items() if name not in {"shard", "output"}}
    for name in (name for name, setting in settings().items() if setting.merged == "united"):
        values = [item.get(name) for item in configs]
        united = list(dict.fromkeys(item for value in values for item in value or ()))
        took_all = None in values or any(str(item).startswith(EXCLUSION_MARK) for item in united)
        config[name] = None if name == "languages" and took_all else united
    return config | dict.fromkeys(differing_settings(manifests))


def _tasks(manifests: Sequence[Manifest], cells: Sequence[CellResult]) -> dict[str, Any]:
    specs = _united(manifests, "tasks")
    languages: dict[str, Any] = {}
    for manifest in manifests:
        for spec in manifest.tasks.values():
            languages |= spec.languages
    order = dict.fromkeys([*(cell.task for cell in cells), *specs])
    return {
        task: {**specs[task].to_json(), **_by_language(manifests, task), "languages": languages}
        for task in order
        if task in specs
    }


def _by_language(manifests: Sequence[Manifest], task: str) -> dict[str, Any]:
    """Return the added, unpaired and described languages of a task in all manifests together."""
    specs = [manifest.tasks[task] for manifest in manifests if task in manifest.tasks]
    united: dict[str, Any] = {name: _united(specs, name) for name in ("added", "names")}
    united["unpaired"] = list(dict.fromkeys(code for spec in specs for code in spec.unpaired))
    return {name: value for name, value in united.items() if value}


def _suites(manifests: Sequence[Manifest]) -> list[dict[str, Any]]:
    """Return the suites of all, each with the languages that some run knew of its tasks."""
    suites: dict[str, dict[str, Any]] = {}
    for manifest in manifests:
        for suite in manifest.suites:
            merged = suites.setdefault(suite.suite, {**suite.to_json(), "languages": dict(suite.languages)})
            for task, codes in suite.languages.items():
                merged["languages"][task] = merged["languages"].get(task) or codes
    return list(suites.values())


def _resolved(manifests: Sequence[Manifest]) -> dict[str, Any]:
    merged, *resolutions = [read_resolution(manifest.resolved) for manifest in manifests]
    for resolution in resolutions:
        merged = merged.joined(resolution)
    return merged.model_dump(mode="json")
