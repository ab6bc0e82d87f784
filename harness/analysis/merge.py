"""Makes one run of several: the shards of a plan, or runs of one model over different tasks and languages.

Runs may be merged that are of the same model, the same data and specs, and the same settings of what is compared.
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.analysis.systems import harness_versions, item_view
from harness.data.translation.services import translator_names
from harness.errors import DataError, StorageError, UsageError
from harness.metrics.metric import Metric
from harness.planning.resolution import Resolution, read_resolution
from harness.planning.run_config import settings
from harness.running.manifest import empty_result
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
LOST = re.compile("shard .* was not merged: ")


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
    Run.at(output).check_usable()
    if output.is_dir() and any(output.iterdir()):
        raise UsageError(f"The folder {str(output)!r} is not empty.", hint="Give a new folder with --output.")
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("A run was named twice; each run can be merged once.")
    for path in paths:
        lock = FileLock(path / LOCK)
        if lock.is_held():
            raise UsageError(
                f"The run {str(path)!r} is still running: {lock.holder()}.",
                hint="Merge it once it has ended.",
            )
    runs = [Run(path) for path in paths]
    files = (file for path in paths for file in sorted((path / "baselines").glob("*/results.json")))
    baselines = grouped((file.parent.name, Run(file.parent)) for file in files)
    merged = _merge(runs, output.absolute().name, metrics, incomplete=incomplete)
    parts = {
        name: _merge(members, name, metrics, incomplete=incomplete) for name, members in baselines.items()
    }
    try:
        _place(merged, parts, output.absolute())
    except OSError as error:
        raise StorageError(
            f"The merged run {str(output)!r} cannot be written: {error}.", hint="Nothing was written."
        ) from error
    return merged.notes


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
    resolution = _check_compatible(runs)
    plan = _whole_plan(runs)
    planned = {cell.digest for run in runs for cell in run.cells if _is_planned(cell)}
    lost = [cell for cell in plan.plan_cells if cell["digest"] not in planned] if plan else []
    count = str(plan.shard).partition("/")[2] if plan else ""
    shards = sorted(Counter(cell["shard"] for cell in lost).items())
    if lost and not incomplete:
        raise UsageError(
            f"The shards {', '.join(f'{shard}/{count}' for shard, _ in shards)} of the plan are missing.",
            hint="Name their runs too, or give --incomplete to merge without them.",
        )
    by_digest, repetitions = _cells_by_digest(runs)
    cells = [cell for cell, _ in by_digest.values()]
    tasks = list(dict.fromkeys(cell.task for cell in cells))
    cells.sort(key=lambda cell: tasks.index(cell.task))
    if plan:
        position = {cell["digest"]: number for number, cell in enumerate(plan.plan_cells)}
        cells += [_absent(cell, count) for cell in lost]
        cells.sort(key=lambda cell: position.get(cell.digest, len(position)))
    cells += _skipped(runs)
    notes = [f"shard {shard}/{count} was not merged: {size} cells are skipped" for shard, size in shards]
    versions = harness_versions(runs)
    if len(versions) > 1:
        notes.append(f"parts of this run were made by the harness {' and '.join(versions)}")
    differing = _differing_settings([run.manifest for run in runs])
    for setting, values in differing.items():
        by_task = "; ".join(f"{value} for {', '.join(task_names)}" for value, task_names in values.items())
        notes.append(f"--{setting} differs between tasks: {by_task}")
    manifest = Manifest.model_validate(_merged_manifest(runs, cells, plan if lost else None, resolution))
    origins = {digest: run for digest, (_, run) in by_digest.items()}
    results = add_task_intervals(
        _results(runs, name, cells, manifest, notes),
        manifest.tasks,
        manifest.suites,
        lambda cell: origins[cell.digest].records_of(cell),
        metrics,
    )
    stopped = sum(cell.has("data") and cell.status == "skipped" for cell in cells)
    unfinished = [f"{stopped} cells were never run: their run was stopped before them"] if stopped else []
    return _Merged(
        runs=runs,
        origins=origins,
        manifest=manifest,
        results=results,
        notes=[*repetitions, *notes, *unfinished],
    )


# Shards -----------------------------------------------------------------------------------------------


def _whole_plan(runs: Sequence[Run]) -> Manifest | None:
    """Return the manifest of the first shard of a plan, None where there is none.

    Raises `UsageError` for shards of several plans.
    """
    shards = [run for run in runs if run.manifest.plan_cells]
    for run in shards:
        first = shards[0]
        paths = f"{str(first.path)!r} and {str(run.path)!r}"
        if run.manifest.plan != first.manifest.plan:
            raise UsageError(
                f"The runs {paths} are shards of different plans.",
                hint="Give every shard the same tasks, languages and settings.",
            )
        counts = [str(shard.manifest.shard).partition("/")[2] for shard in (first, run)]
        if counts[0] != counts[1]:
            raise UsageError(
                f"The runs {paths} divide their plan differently: into {counts[0]} shards and into {counts[1]}."
            )
    return shards[0].manifest if shards else None


def _is_planned(cell: CellResult) -> bool:
    """Whether a run had the cell; an incomplete merge names those of other shards too, without data."""
    return cell.has("digest") and cell.has("data")


# Cells ------------------------------------------------------------------------------------------------


def _absent(cell: Mapping[str, Any], count: str) -> CellResult:
    names = ("task", "version", "language", "protocol", "method", "view", "seed", "digest")
    reason = f"in shard {cell['shard']}/{count}, which was not merged"
    identity = {name: cell[name] for name in names}
    return CellResult(**identity, fit=None, prompt=None, **empty_result("skipped", reason))


def _cells_by_digest(runs: Sequence[Run]) -> tuple[dict[str, tuple[CellResult, Run]], list[str]]:
    """Return by digest every cell with its run, a finished one where there is one, and notes on repetitions."""
    by_digest: dict[str, tuple[CellResult, Run]] = {}
    repeated: Counter[str] = Counter()
    for run in runs:
        for cell in run.cells:
            if not _is_planned(cell):
                continue
            before = by_digest.get(cell.digest)
            if before is None or (before[0].status != "ok" and cell.status == "ok"):
                by_digest[cell.digest] = (cell, run)
            elif before[0].status == cell.status == "ok":
                _require_same_scores(before, (cell, run))
                repeated[str(run.path)] += 1
    return by_digest, [
        f"{count} cells of {path} are in an earlier run, too" for path, count in repeated.items()
    ]


def _require_same_scores(*cells: tuple[CellResult, Run]) -> None:
    """Raise `UsageError` unless two finished cells have as many items and the same metrics, within 1e-5."""
    values = [{name: score.value for name, score in cell.metrics.items()} for cell, _ in cells]
    is_same = values[0].keys() == values[1].keys() and all(
        math.isclose(value, values[1][name], rel_tol=0, abs_tol=TOLERANCE)
        for name, value in values[0].items()
    )
    (cell, first), (repeated, second) = cells
    if not is_same or cell.n != repeated.n:
        scores = [", ".join(f"{name} {value:.6f}" for name, value in by_name.items()) for by_name in values]
        raise UsageError(
            f"The runs {str(first.path)!r} and {str(second.path)!r} have different scores of "
            f"{cell.task}:{cell.language} ({cell.protocol}): {scores[0]} over {cell.n} items and "
            f"{scores[1]} over {repeated.n} items.",
            hint="Omit one of them; harness compare RUN RUN shows the items that differ.",
        )


def _skipped(runs: Sequence[Run]) -> list[CellResult]:
    """Return the cells that the plans skipped, each once, without those that another run did."""
    planned = [[cell for cell in run.cells if _is_planned(cell)] for run in runs]
    skipped: dict[str, CellResult] = {}
    for run, cells in zip(runs, planned, strict=True):
        has_pair = {(cell.task, cell.language) for cell in cells}
        for cell in run.cells:
            pair = (cell.task, cell.language)
            is_done = pair not in has_pair and any(
                (done.task, done.language) == pair
                and cell.protocol in {None, done.protocol}
                and cell.view.items() <= done.view.items()
                for done in itertools.chain.from_iterable(planned)
            )
            if not cell.has("digest") and not is_done:
                skipped.setdefault(repr([*pair, cell.protocol, cell.view, cell.reason]), cell)
    return list(skipped.values())


# Documents --------------------------------------------------------------------------------------------


def _results(
    runs: Sequence[Run], name: str, cells: Sequence[CellResult], manifest: Manifest, notes: Sequence[str]
) -> RunResults:
    heads = [run.results.run for run in runs]
    requests: Counter[str] = Counter()
    for head in heads:
        requests.update(head.requests)
    # Of a part that was merged itself, without what was missing then.
    run_notes = [note for run in runs for note in run.results.notes if not LOST.match(note)]
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
    copies: dict[Path, Path] = {}
    for cell in merged.results.cells:
        run = merged.origins.get(cell.digest)
        if run is None:
            continue
        if cell.status == "ok":
            source = run.records_of(cell)
            if not source.is_file():
                raise DataError(
                    f"The records {str(source)!r} of a finished cell are missing, so the run is not whole."
                )
            copies[source] = folder.records_path(cell.task, cell.language, cell.digest)
        names = ("failures/{}.txt", "cells/{}.json", f"cells/{{}}{STARTED}")
        for name in (pattern.format(cell.digest) for pattern in names):
            if (run.path / name).is_file():
                copies[run.path / name] = folder.path / name
    logs = [
        path
        for run in merged.runs
        for path in sorted((run.path / "journal").glob("*.log"), key=lambda log: (len(log.stem), log.stem))
    ]
    copies |= {path: folder.path / "journal" / f"{number}.log" for number, path in enumerate(logs)}
    for source, target in copies.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    folder.write_manifest(merged.manifest)
    folder.write_results(merged.results)


# Compatibility ------------------------------------------------------------------------------------------


def _check_compatible(runs: Sequence[Run]) -> Resolution | None:
    """Return the joint resolution of the runs; raises `UsageError` for the first difference that must not be."""
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
    return merged


def _differs(first: Run, run: Run, difference: str) -> UsageError:
    return UsageError(
        f"The runs {str(first.path)!r} and {str(run.path)!r} cannot be merged: they differ in {difference}.",
        hint="Compare them instead: harness compare RUN RUN",
    )


def _facts(run: Run) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """Yield a noun phrase for the message, a further key, and the value that all runs with this key must share."""
    model, config = run.results.model, run.manifest.config
    yield "the adapter", (), model.adapter
    # Nothing is known of a model that was never opened; what it would have answered is not there either.
    if any(cell.status == "ok" for cell in run.cells):
        yield "what is known of the model", (), sorted(model.metadata)
        yield from ((f"the model ({name})", (), value) for name, value in model.metadata.items())
    yield "the place of the data (--data)", (), run.results.run.data
    for name, setting in settings().items():
        if setting.merged in {"same", "task"}:
            # How many items a cell has must agree only between runs that share a task.
            for task in [""] if setting.merged == "same" else run.manifest.tasks:
                yield f"the setting {name!r}", (task,), config.get(name)
    yield from ((f"the {name}", (), code) for name, code in run.manifest.code.items())
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


# The manifest -------------------------------------------------------------------------------------------


def _differing_settings(manifests: Sequence[Manifest]) -> dict[str, dict[str, list[str]]]:
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


def _merged_manifest(
    runs: Sequence[Run], cells: Sequence[CellResult], plan: Manifest | None, resolution: Resolution | None
) -> dict[str, Any]:
    """Return the ``manifest.json`` of a merged run.

    Args:
        runs: The parts; the versions and the machine are the first one's, `merged_from` names the others.
        cells: The cells of the merged run, in order.
        plan: The manifest of a shard, where some shards are missing.
        resolution: What all resolved, together.
    """
    manifests = [run.manifest for run in runs]
    shard_keys = {"shard", "plan", "plan_cells", "resolved"}
    first = {name: value for name, value in manifests[0].to_json().items() if name not in shard_keys}
    identities = {cell["digest"]: cell for manifest in manifests for cell in manifest.cells}
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
        "cells": [identities[cell.digest] for cell in cells if cell.digest in identities],
        "fits": list(dict.fromkeys(title for manifest in manifests for title in manifest.fits)),
        "notes": list(dict.fromkeys(note for item in manifests for note in item.notes)),
        "merged_from": [_source(run) for run in runs],
    }
    translators = {name: item for manifest in manifests for name, item in manifest.translators.items()}
    if translators:
        merged["translators"] = translators
    if resolution is not None and all(manifest.resolved for manifest in manifests):
        merged["resolved"] = resolution.model_dump(mode="json")
    if plan is not None:
        shards = [str(manifest.shard).partition("/") for manifest in manifests if manifest.plan_cells]
        indices = sorted({int(index) for numbers, *_ in shards for index in numbers.split("+")})
        shard = f"{'+'.join(map(str, indices))}/{shards[0][2]}"
        merged |= {"shard": shard, "plan": plan.plan, "plan_cells": plan.plan_cells}
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
    return config | dict.fromkeys(_differing_settings(manifests))


def _tasks(manifests: Sequence[Manifest], cells: Sequence[CellResult]) -> dict[str, Any]:
    """Return the tasks of all, each with the languages that some run added, described or knew as unpaired."""
    summaries = grouped(pair for manifest in manifests for pair in manifest.tasks.items())
    specs_of_all = (spec for manifest in manifests for spec in manifest.tasks.values())
    languages = {code: pair for spec in specs_of_all for code, pair in spec.languages.items()}
    merged = {}
    for task in dict.fromkeys([*(cell.task for cell in cells), *_united(manifests, "tasks")]):
        specs = summaries.get(task, [])
        united: dict[str, Any] = {name: _united(specs, name) for name in ("added", "names")}
        united["unpaired"] = list(dict.fromkeys(code for spec in specs for code in spec.unpaired))
        if specs:
            further = {name: value for name, value in united.items() if value}
            merged[task] = {**specs[0].to_json(), **further, "languages": languages}
    return merged


def _suites(manifests: Sequence[Manifest]) -> list[dict[str, Any]]:
    """Return the suites of all, each with the languages that some run knew of its tasks."""
    suites: dict[str, dict[str, Any]] = {}
    for manifest in manifests:
        for suite in manifest.suites:
            merged = suites.setdefault(suite.suite, {**suite.to_json(), "languages": dict(suite.languages)})
            for task, codes in suite.languages.items():
                merged["languages"][task] = merged["languages"].get(task) or codes
    return list(suites.values())
